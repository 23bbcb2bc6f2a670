// What the TypeScript of Debian 12 does not declare yet.  SPDX-License-Identifier: MIT
declare class DecompressionStream {
  constructor(format: "gzip");
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<BufferSource>;
}

// Where a page of one profile has its data from: its own file, or `offbeat view`, which may have a newer one each second.
// SPDX-License-Identifier: MIT

// Five digits of base 85 are four bytes (src/page/page_file.c); "}" is the digit that "<" would be.
function bytesOfText(given: string): Uint8Array {
  const text = given.trim(), whole = Math.floor(text.length / 5), rest = text.length % 5;
  const bytes = new Uint8Array(whole * 4 + Math.max(0, rest - 1));
  const digit = (at: number) => {
    const code = at < text.length ? text.charCodeAt(at) : 124; // the highest one
    return code === 125 ? 20 : code - 40;
  };
  for (let at = 0, to = 0; to < bytes.length; at += 5, to += 4) {
    const number = (((digit(at) * 85 + digit(at + 1)) * 85 + digit(at + 2)) * 85 + digit(at + 3)) * 85 + digit(at + 4);
    for (let i = 0; i < 4 && to + i < bytes.length; i++) bytes[to + i] = number >>> (24 - 8 * i);
  }
  return bytes;
}

// `offbeat view` serves one profile, in a folder with a secret name; `offbeat serve` serves its store.
export function isOfServer(): boolean {
  return !document.getElementById("data") && !/\/[0-9a-f]{32}\/$/.test(location.pathname);
}

export interface SourceLine {
  line: number;
  self: number;
  total: number;
  source?: string;
}

export interface SourceOfFunction {
  file: string;
  lines: SourceLine[];
}

export interface Bytes {
  bytes: ArrayBuffer;
  base?: ArrayBuffer; // what it is compared with
}

function bytesOf(element: HTMLElement): ArrayBuffer {
  return bytesOfText(element.textContent!).buffer as ArrayBuffer;
}

export class Host {
  isLive = false; // a command runs, and a later profile will have more samples
  private readonly isFile = document.getElementById("data") !== null;
  private version = "";

  // null: there is nothing new.
  async load(): Promise<Bytes | null> {
    const base = document.getElementById("base");
    if (this.isFile) return { bytes: bytesOf(document.getElementById("data")!), base: base ? bytesOf(base) : undefined };
    const answer = await fetch("data", this.version ? { headers: { "If-None-Match": this.version } } : {});
    if (!answer.ok && answer.status !== 304) throw new Error(`offbeat view answers ${answer.status}`);
    const note = answer.headers.get("Offbeat-Page");
    this.isLive = note === "live";
    if (answer.status !== 200) return null;
    this.version = answer.headers.get("ETag") || "";
    return { bytes: await answer.arrayBuffer(), base: note === "compared" ? await (await fetch("base")).arrayBuffer() : undefined };
  }

  get isServed(): boolean {
    return !this.isFile;
  }

  get hasSource(): boolean {
    return !this.isFile && !this.isLive;
  }

  // What each line of the function cost, one entry for each file that its code is from; null: the profile does not know.
  async source(name: string, type: number): Promise<SourceOfFunction[] | null> {
    const answer = await fetch(`source/${type}/${encodeURIComponent(name)}`);
    if (!answer.ok) return null;
    return answer.json() as Promise<SourceOfFunction[]>;
  }
}

// The worker, as the page sees it.  SPDX-License-Identifier: MIT
import type { RequestName, Requests } from "./protocol";

interface Waiting {
  resolve: (answer: never) => void;
  reject: (error: Error) => void;
}

export class Client {
  private readonly worker: Worker;
  private readonly waiting = new Map<number, Waiting>();
  private number = 0;

  // SCRIPT is that of this page: a file of a server, or text of the page itself, which a worker gets as a blob.
  constructor(script: HTMLScriptElement) {
    const url = script.src || URL.createObjectURL(new Blob([script.textContent!], { type: "text/javascript" }));
    this.worker = new Worker(url);
    this.worker.onmessage = (event: MessageEvent<{ number: number; answer?: never; error?: string }>) => {
      const { number, answer, error } = event.data, waiting = this.waiting.get(number);
      this.waiting.delete(number);
      if (error !== undefined) waiting?.reject(new Error(error));
      else waiting?.resolve(answer as never);
    };
    this.worker.onerror = (event) => {
      for (const waiting of this.waiting.values()) waiting.reject(new Error(event.message || "the worker has failed"));
    };
  }

  ask<Name extends RequestName>(name: Name, ask: Requests[Name]["ask"], transfer: Transferable[] = []): Promise<Requests[Name]["answer"]> {
    const number = ++this.number;
    return new Promise((resolve, reject) => {
      this.waiting.set(number, { resolve: resolve as (answer: never) => void, reject });
      this.worker.postMessage({ number, name, ask }, transfer);
    });
  }
}

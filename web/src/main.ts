// One script for both: the page, and the worker that the page starts from the same text.  SPDX-License-Identifier: MIT
import { startPage } from "./start";
import { startWorker } from "./worker";

if (typeof document === "undefined") startWorker();
else startPage(document.currentScript as HTMLScriptElement);

// Sends profiles of this process with Pyroscope's client for Node: wall, CPU and heap. SPDX-License-Identifier: MIT
const Pyroscope = require("@pyroscope/nodejs");
Pyroscope.init({ serverAddress: process.env.SERVER_ADDRESS, appName: "node.shop", authToken: process.env.KEY, flushIntervalMs: 1000,
  tags: { region: "eu", hostname: "h1" }, wall: { samplingDurationMs: 1000, samplingIntervalMicros: 10000, collectCpuTime: true },
  heap: { samplingIntervalBytes: 65536, stackDepth: 64 } });
Pyroscope.start();

function burn(ms) {
  const end = Date.now() + ms;
  let x = 0;
  while (Date.now() < end) x += Math.sqrt(x + 1);
  return x;
}
const kept = [];
function keep() {
  for (let i = 0; i < 100; i++) kept.push(new Array(10000).fill(i));
}

(async () => {
  for (let i = 0; i < 20; i++) {
    burn(100);
    keep();
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  setTimeout(() => process.exit(0), 1200); // its stop() ends in an error if a round of the heap is under way
})();

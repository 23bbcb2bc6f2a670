// Work for node's profilers: MILLISECONDS.  SPDX-License-Identifier: MIT
function leaf(n) { const made = []; for (let i = 0; i < n; i++) made.push({ i, text: String(i) }); return made; }
function middle(n) { let sum = 0; for (let i = 0; i < n; i++) sum += leaf(200 + i).length; return sum; }
function recurse(n) { return n === 0 ? leaf(3000).length : recurse(n - 1) + 1; }
globalThis.kept = [];
const end = Date.now() + Number(process.argv[2]);
while (Date.now() < end) {
  middle(40);
  globalThis.kept.push(leaf(100));
  recurse(10);
}

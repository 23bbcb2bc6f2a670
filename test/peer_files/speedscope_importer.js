// speedscope's own importer, without a page: for each file a line of JSON with the unit and weight of each profile.
//   node speedscope_importer.js RELEASE_FOLDER FILE…                                          SPDX-License-Identifier: MIT
const fs = require('fs'), path = require('path'), vm = require('vm'), zlib = require('zlib');
const [folder, ...files] = process.argv.slice(2);
const script = fs.readdirSync(folder).find((name) => /^speedscope-.*\.js$/.test(name));
let text = fs.readFileSync(path.join(folder, script), 'utf8');
// The bundle ends with the page, which prints its version first: in its place, the modules begin and the importer is noted.
const page = text.indexOf('console.log(`speedscope v');
const importer = /importProfilesFromArrayBuffer:\(\)=>([\w$]+)/.exec(text)[1];
const modules = [...text.matchAll(/[,;\s]([\w$]+)=re\(\(\)=>\{/g)].map((found) => found[1]);
text = `${text.slice(0, page)}globalThis.importer=${importer};for(const one of [${modules}]){try{one()}catch{}};return;${text.slice(page)}`;
const nothing = new Proxy(function () {}, {
  get: (_, name) => (name === Symbol.toPrimitive ? () => '' : name === 'length' ? 0 : nothing),
  apply: () => nothing, construct: () => nothing, set: () => true,
});
const log = [];
const note = (...words) => log.push(words.map((word) => (word && word.message) || word).join(' '));
const quiet = () => {};
const context = {
  console: {log: quiet, warn: note, error: note, assert: quiet, time: quiet, timeEnd: quiet, group: quiet, groupEnd: quiet},
  location: {hash: '', protocol: 'http:'}, navigator: {userAgent: '', platform: ''}, requestAnimationFrame: quiet,
  setTimeout, clearTimeout, TextDecoder, TextEncoder, Uint8Array, ArrayBuffer, performance, URL, DecompressionStream, Blob, atob, btoa,
};
for (const name of ['document', 'localStorage', 'matchMedia', 'FileReader', 'File', 'Response', 'Request', 'Headers', 'fetch', 'WebAssembly', 'Element',
  'HTMLElement', 'Node', 'self', 'Image', 'MutationObserver', 'XMLHttpRequest', 'alert'])
  context[name] = nothing;
context.globalThis = context;
context.window = new Proxy(context, {get: (all, name) => (name in all ? all[name] : nothing), set: (all, name, value) => ((all[name] = value), true)});
vm.createContext(context);
vm.runInContext(text, context);

(async () => {
  for (const file of files) {
    let bytes = fs.readFileSync(file);
    if (bytes[0] === 0x1f && bytes[1] === 0x8b) bytes = zlib.gunzipSync(bytes);
    log.length = 0;
    const answer = {file, profiles: []};
    try {
      const group = await context.importer(path.basename(file), bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
      for (const profile of group ? group.profiles : [])
        answer.profiles.push({name: profile.getName(), unit: profile.getWeightUnit(), total: profile.getTotalNonIdleWeight()});
      if (!group) answer.error = 'not recognized';
    } catch (why) {
      answer.error = String(why && why.message);
    }
    console.log(JSON.stringify({...answer, log: log.slice(0, 3)}));
  }
})();

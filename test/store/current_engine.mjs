// Runs the statements of a file of JSON lines {database, named, sql, body} in the current engine as a library (chdb), and prints what it refuses, and
// how many chunks it had before the first deletion.
// Arguments: the folder of chdb, the file, a new folder. SPDX-License-Identifier: MIT
import fs from "node:fs";
import path from "node:path";

const [folder, file, data] = process.argv.slice(2);
const { Session } = await import(path.join(folder, "index.mjs"));
const session = new Session(data);
const lines = fs.readFileSync(file, "utf8").trim().split("\n").map((line) => JSON.parse(line));
const refused = [];
let rows = "";
for (const { database, named, sql, body } of lines) {
  let text = sql.replace(/ FORMAT RowBinary$/, "");
  const insert = /^INSERT INTO (\S+) \(([^)]*)\) FORMAT Native$/.exec(sql);
  if (insert) {
    fs.writeFileSync(`${data}.native`, Buffer.from(body, "base64"));
    text = `INSERT INTO ${insert[1]} (${insert[2]}) SELECT ${insert[2]} FROM file('${data}.native', Native)`;
  }
  try {
    if (database) session.query(`USE ${database}`);
    if (!rows && text.includes(" DELETE WHERE ")) rows = `${session.query(`SELECT count(DISTINCT id) FROM ${named}.chunk`, "TabSeparated")}`.trim();
    session.query(text, "Null");
  } catch (error) {
    refused.push(`${error.message}`.slice(0, 300) + `: ${text.slice(0, 300)}`);
  }
}
console.log(JSON.stringify({ version: `${session.query("SELECT version()", "TabSeparated")}`.trim(), statements: lines.length, refused, rows }));
session.cleanup();

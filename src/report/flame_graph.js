/* Zoom, search and keyboard for the flame graph that this script is part of. Without scripts the drawing shows its wide
 * boxes with names and tooltips. SPDX-License-Identifier: MIT */
"use strict";
(function () {
  const SVG = "http://www.w3.org/2000/svg", HTML = "http://www.w3.org/1999/xhtml";
  const WIDTH = 1200, CHARACTER = 6.7, SLACK = 0.002, THIN = 2;
  const NARROW_MAX = 5000, NARROWEST = 0.25, PARTS = 1e5; /* of narrow boxes: drawn at once; in pixels; of a pixel */
  const root = document.documentElement;
  const rows = Array.from(root.querySelectorAll("g.row"));
  const boxes = [];
  let zoomed = null, current = null, marked = null, matcher = null;

  function makeBox(parts) {
    return Object.assign({rect: null, text: null, isNarrow: false, shown: true, shownX: parts.x, shownWidth: parts.width,
                          isCaller: false, isMatch: false}, parts);
  }

  function readElements(row, depth) {
    const found = Array.from(row.querySelectorAll("rect"), (rect) => {
      const tip = rect.firstChild.textContent, end = tip.indexOf("\n");
      const x = +rect.getAttribute("x"), width = +rect.getAttribute("width");
      rect.box = makeBox({rect, row, depth, x, width, tip, name: end < 0 ? tip : tip.slice(0, end)});
      return rect.box;
    });
    row.querySelectorAll("text").forEach((text) => text.remove());
    return found;
  }

  /* LINE has five numbers for each box: the gap to the box before and the width, in parts of a pixel, and the strings
   * that are its name, values and class. */
  function readNarrow(line, strings, row, depth) {
    const found = [], numbers = line === "" ? [] : line.split(" ");
    for (let at = 0, x = 0; at < numbers.length; at += 5) {
      const width = numbers[at + 1] / PARTS, name = strings[numbers[at + 2]];
      x += +numbers[at];
      found.push(makeBox({row, depth, x: x / PARTS, width, name, tip: name + strings[numbers[at + 3]],
                          className: strings[numbers[at + 4]], isNarrow: true, shown: false}));
      x += +numbers[at + 1];
    }
    return found;
  }

  function read() {
    const element = document.getElementById("narrow"), lines = element ? element.textContent.split("\n") : [];
    const strings = lines.slice(rows.length).map((line) => line.replace(/\t/g, "\n")); /* the empty line is number 0 */
    rows.forEach((row, depth) => {
      const wide = readElements(row, depth), narrow = readNarrow(lines[depth] || "", strings, row, depth);
      const all = narrow.length > 0 ? wide.concat(narrow).sort((a, b) => a.x - b.x) : wide;
      for (const box of all) boxes.push(box);
    });
  }

  /* Boxes are inside each other or apart, so one point decides; edges are rounded. */
  function contains(outer, inner) {
    const middle = inner.x + inner.width / 2;
    return outer.x <= middle && middle <= outer.x + outer.width;
  }

  function label(box, x, width) {
    const room = Math.floor((width - 6) / CHARACTER);
    if (room < 3) {
      if (box.text) { box.text.remove(); box.text = null; }
      return;
    }
    if (!box.text) {
      box.text = document.createElementNS(SVG, "text");
      box.text.setAttribute("y", 13);
      box.row.appendChild(box.text);
    }
    const characters = Array.from(box.name);
    box.text.setAttribute("x", x + 3);
    box.text.textContent = characters.length > room ? characters.slice(0, room - 1).join("") + "…" : box.name;
  }

  function addRect(box) {
    const rect = document.createElementNS(SVG, "rect"), title = document.createElementNS(SVG, "title");
    title.textContent = box.tip;
    rect.appendChild(title);
    rect.setAttribute("height", 17);
    rect.setAttribute("class", box.className + (box.width < THIN ? " t" : "") + (box.isMatch ? " match" : ""));
    rect.setAttribute("x", box.x);
    rect.setAttribute("width", box.width);
    box.shownX = box.x;
    box.shownWidth = box.width;
    rect.box = box;
    box.rect = rect;
    box.row.insertBefore(rect, box.row.firstChild);
  }

  /* Changing elements costs the browser most time, so elements that stay the same are not touched. */
  function show(box, shown, isCaller) {
    if (box.isNarrow && shown && !box.rect) addRect(box);
    if (box.isNarrow && !shown && box.rect) {
      box.rect.remove();
      box.rect = null;
      box.isCaller = false;
    }
    if (box.rect && !box.isNarrow && box.shown !== shown) box.rect.style.display = shown ? "" : "none";
    if (box.rect && box.isCaller !== isCaller) box.rect.classList.toggle("caller", isCaller);
    box.shown = shown;
    box.isCaller = isCaller;
  }

  function place(box, x, width) {
    if (box.shownX !== x) box.rect.setAttribute("x", x);
    if (box.shownWidth !== width) {
      box.rect.setAttribute("width", width);
      box.rect.classList.toggle("t", width < THIN);
    }
    box.shownX = x;
    box.shownWidth = width;
  }

  /* The width below which narrow boxes are not drawn. */
  function narrowest(view, scale) {
    const widths = [];
    for (const box of boxes) {
      const width = box.width * scale;
      if (box.isNarrow && width >= NARROWEST && box.depth >= view.depth && contains(view, box)) widths.push(width);
    }
    if (widths.length <= NARROW_MAX) return NARROWEST;
    return Float64Array.from(widths).sort()[widths.length - NARROW_MAX];
  }

  function draw() {
    const view = zoomed || boxes[0], scale = zoomed ? WIDTH / (view.width || WIDTH) : 1;
    const limit = narrowest(view, scale);
    let room = NARROW_MAX;
    for (const box of boxes) {
      const isCaller = box.depth < view.depth && contains(box, view);
      const isInside = box.depth >= view.depth && contains(view, box);
      const x = isCaller ? 0 : (box.x - view.x) * scale, width = isCaller ? WIDTH : box.width * scale;
      const shown = isCaller || (isInside && (!box.isNarrow || (width >= limit && room-- > 0)));
      show(box, shown, isCaller);
      if (shown) place(box, x, width);
      label(box, x, shown ? width : 0);
    }
    if (marked) marked.classList.remove("current");
    marked = current && current.rect;
    if (marked) marked.classList.add("current");
    reset.style.display = zoomed ? "" : "none";
  }

  function zoom(box) {
    zoomed = box && box.depth > 0 ? box : null;
    current = box;
    draw();
  }

  /* A match inside another match counts once. */
  function matchedWidth(matches) {
    let end = 0, sum = 0;
    matches.sort((a, b) => a.x - b.x || b.width - a.width);
    for (const box of matches) {
      const from = Math.max(end, box.x), to = box.x + box.width;
      if (to > from) sum += to - from;
      end = Math.max(end, to);
    }
    return sum;
  }

  function compile(pattern) {
    try {
      return new RegExp(pattern, "i");
    } catch (error) {
      return new RegExp(pattern.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "i");
    }
  }

  function mark(box, isMatch) {
    if (box.rect && box.isMatch !== isMatch) box.rect.classList.toggle("match", isMatch);
    box.isMatch = isMatch;
  }

  function search(pattern) {
    matcher = pattern === "" ? null : compile(pattern);
    const matches = boxes.filter((box) => matcher && box.depth > 0 && matcher.test(box.name));
    for (const box of boxes) mark(box, false);
    for (const box of matches) mark(box, true);
    const share = 100 * matchedWidth(matches) / WIDTH;
    result.textContent = matcher ? "matched " + share.toFixed(2) + "% of the drawing, boxes: " + matches.length : "";
  }

  function neighbour(key) {
    const from = current || boxes[0], right = from.x + from.width;
    const inRow = (depth) => boxes.filter((box) => box.depth === depth && box.shown);
    if (key === "ArrowUp") return inRow(from.depth - 1).find((box) => contains(box, from));
    if (key === "ArrowDown") return inRow(from.depth + 1).find((box) => contains(from, box));
    if (key === "ArrowRight") return inRow(from.depth).find((box) => box.x >= right - SLACK && box !== from);
    return inRow(from.depth).filter((box) => box.x + box.width <= from.x + SLACK && box !== from).pop();
  }

  function typed(event) {
    const isFind = (event.ctrlKey || event.metaKey) && event.key === "f";
    const isInField = event.target === field;
    if (isFind || (event.key === "/" && !isInField)) {
      field.focus();
      field.select();
    } else if (event.key === "Escape") {
      field.value = "";
      field.blur();
      search("");
      zoom(null);
    } else if (isInField || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    } else if (event.key === "Enter") {
      if (current) zoom(current);
    } else if (event.key.startsWith("Arrow")) {
      current = neighbour(event.key) || current || boxes[0];
      selected.textContent = current.tip.split("\n").join(" · ").slice(0, 110);
      draw();
    } else {
      return;
    }
    event.preventDefault();
  }

  function addField() {
    const frame = document.createElementNS(SVG, "foreignObject"), input = document.createElementNS(HTML, "input");
    for (const [key, value] of [["x", 960], ["y", 6], ["width", 250], ["height", 26]]) frame.setAttribute(key, value);
    input.setAttribute("type", "search");
    input.setAttribute("placeholder", "Search (Ctrl-F), regular expression");
    input.setAttribute("aria-label", "Search");
    input.addEventListener("input", () => search(input.value));
    frame.appendChild(input);
    root.appendChild(frame);
    return input;
  }

  function addText(id, x, y, anchor, content) {
    const text = document.createElementNS(SVG, "text");
    text.id = id;
    text.setAttribute("x", x);
    text.setAttribute("y", y);
    text.setAttribute("text-anchor", anchor);
    text.textContent = content;
    root.appendChild(text);
    return text;
  }

  read();
  const field = addField();
  const result = addText("result", 1210, 62, "end", "");
  const selected = addText("selected", 10, 62, "start", "");
  const reset = addText("reset", 950, 22, "end", "Reset zoom (Escape)");
  reset.addEventListener("click", () => zoom(null));
  root.addEventListener("click", (event) => {
    const box = event.target.box || (event.target.parentNode && event.target.parentNode.box);
    if (box) zoom(box);
  });
  window.addEventListener("keydown", typed);
  draw();
})();

/* Zoom, search and keyboard for the flame graph that this script is part of. Without scripts the drawing shows all of
 * its boxes with names and tooltips. SPDX-License-Identifier: MIT */
"use strict";
(function () {
  const SVG = "http://www.w3.org/2000/svg", HTML = "http://www.w3.org/1999/xhtml";
  const WIDTH = 1200, CHARACTER = 6.7, SLACK = 0.002, THIN = 2;
  const root = document.documentElement;
  const rows = Array.from(root.querySelectorAll("g.row"));
  const boxes = [];
  let zoomed = null, current = null, marked = null, matcher = null;

  function read() {
    rows.forEach((row, depth) => {
      row.querySelectorAll("rect").forEach((rect) => {
        const tip = rect.firstChild.textContent, end = tip.indexOf("\n");
        const x = +rect.getAttribute("x"), width = +rect.getAttribute("width");
        boxes.push({rect, row, depth, x, width, name: end < 0 ? tip : tip.slice(0, end), text: null,
                    shown: true, shownX: x, shownWidth: width, isCaller: false});
      });
      row.querySelectorAll("text").forEach((text) => text.remove());
    });
    boxes.forEach((box) => { box.rect.box = box; });
  }

  function contains(outer, inner) {
    return outer.x <= inner.x + SLACK && outer.x + outer.width >= inner.x + inner.width - SLACK;
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

  /* The browser's time goes into changes of elements: what is as it was is left alone. */
  function show(box, shown, isCaller) {
    if (box.shown !== shown) box.rect.style.display = shown ? "" : "none";
    if (box.isCaller !== isCaller) box.rect.classList.toggle("caller", isCaller);
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

  function draw() {
    const view = zoomed || boxes[0], scale = zoomed ? WIDTH / (view.width || WIDTH) : 1;
    for (const box of boxes) {
      const isCaller = box.depth < view.depth && contains(box, view);
      const isInside = box.depth >= view.depth && contains(view, box);
      const x = isCaller ? 0 : (box.x - view.x) * scale, width = isCaller ? WIDTH : box.width * scale;
      const shown = isCaller || isInside;
      show(box, shown, isCaller);
      if (shown) place(box, x, width);
      label(box, x, shown ? width : 0);
    }
    if (marked) marked.rect.classList.remove("current");
    if (current) current.rect.classList.add("current");
    marked = current;
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

  function search(pattern) {
    matcher = pattern === "" ? null : compile(pattern);
    const matches = boxes.filter((box) => matcher && box.depth > 0 && matcher.test(box.name));
    for (const box of boxes) box.rect.classList.remove("match");
    for (const box of matches) box.rect.classList.add("match");
    const share = 100 * matchedWidth(matches) / WIDTH;
    result.textContent = matcher ? "matched " + share.toFixed(2) + "% of the drawing, boxes: " + matches.length : "";
  }

  function neighbour(key) {
    const from = current || boxes[0], right = from.x + from.width;
    const inRow = (depth) => boxes.filter((box) => box.depth === depth && box.rect.style.display !== "none");
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
      selected.textContent = current.rect.querySelector("title").textContent.split("\n").join(" · ").slice(0, 110);
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

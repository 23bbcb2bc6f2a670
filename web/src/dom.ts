// Elements with text only: no name becomes HTML.  SPDX-License-Identifier: MIT

export type Attributes = { [name: string]: string | number | boolean };

export function make<Tag extends keyof HTMLElementTagNameMap>(tag: Tag, attributes: Attributes = {},
                                                              ...children: (Node | string)[]): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  for (const name of Object.keys(attributes)) {
    const value = attributes[name];
    if (value === true) element.setAttribute(name, "");
    else if (value !== false) element.setAttribute(name, String(value));
  }
  element.append(...children);
  return element;
}

export function button(label: string, title: string, press: () => void): HTMLButtonElement {
  const element = make("button", { type: "button", title, "aria-label": title }, label);
  element.addEventListener("click", press);
  return element;
}

// A link within the page. A click with a key or another button is the browser's: a new tab.
export function link(label: string, title: string, address: string, follow: () => void): HTMLAnchorElement {
  const element = make("a", { href: address, title }, label);
  element.addEventListener("click", (event) => {
    if (event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    follow();
  });
  return element;
}

export function fill(select: HTMLSelectElement, options: [value: string, text: string][]): void {
  select.replaceChildren(...options.map(([value, text]) => make("option", { value }, text)));
}

export function choice(label: string, options: [value: string, text: string][], choose: (value: string) => void): HTMLSelectElement {
  const element = make("select", { "aria-label": label, title: label });
  fill(element, options);
  element.addEventListener("change", () => choose(element.value));
  return element;
}

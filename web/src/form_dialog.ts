// Asks for some values, or whether to go on, in a dialog.  SPDX-License-Identifier: MIT
import { button, choice, make } from "./dom";

export interface Field {
  name: string; // "": is not part of the answer
  label: string;
  value: string;
  type?: string;
  options?: string[]; // a choice of them
  mustBe?: string; // the value without which there is no answer
  isOptional?: boolean;
}

// The values by name; null: the user does not go on.
export function askForm(title: string, fields: Field[], verb: string): Promise<{ [name: string]: string } | null> {
  const inputs = fields.map(({ value, type, options, label, isOptional, mustBe }) => {
    if (!options) return make("input", { type: type || "text", value, "aria-label": label, required: !isOptional, spellcheck: "false", autocomplete: "off", ...(mustBe ? { pattern: mustBe } : {}) });
    const select = choice(label, options.map((option) => [option, option]), () => {});
    select.value = value;
    return select;
  });
  const labels = fields.map(({ label }, i) => make("label", {}, make("span", {}, label), inputs[i]));
  return new Promise((resolve) => {
    const dialog = make("dialog", { class: "form", "aria-label": title });
    const form = make("form", { method: "dialog" }, make("h2", {}, title), ...labels,
                      make("p", { class: "actions" }, make("button", { type: "submit" }, verb), button("Cancel", "change nothing", () => dialog.close())));
    dialog.append(form);
    let answer: { [name: string]: string } | null = null;
    form.addEventListener("submit", () => {
      answer = {};
      fields.forEach(({ name }, i) => name && (answer![name] = inputs[i].value.trim()));
    });
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(answer);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

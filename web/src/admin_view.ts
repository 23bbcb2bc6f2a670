// Projects, keys, limits and deletion, for a token with the role admin.  SPDX-License-Identifier: MIT
import type { Parameters } from "./api";
import { button, make } from "./dom";
import { askForm, type Field } from "./form_dialog";
import { hint, listTable } from "./list_table";
import type { ServerApp, ServerView } from "./server_page";
import { quantity, safe, Unit } from "./text";
import { agoText, secondsOf } from "./times";

interface Project {
  project: number;
  name: string;
  keep_days?: number; // 0: for ever
  disk_megabytes?: number;
  dsn?: string;
}

interface Key {
  key: number;
  project: number | "all";
  role: string;
  name: string;
  created: string;
}

interface Usage {
  project: number;
  service: string;
  chunks: number;
  samples: number;
  bytes: number;
  last: string;
}

// What a change answers: a secret, which no later answer has, or a count.
interface Changed {
  dsn?: string;
  token?: string;
  deleted_chunks?: number;
}

const ROLES = ["read", "write", "upload", "metrics", "admin"], USAGE_MAX = 500;

export class AdminView implements ServerView {
  readonly element = make("section", { class: "server-view admin" });
  private readonly answer = make("p", { class: "answer", role: "status" });

  constructor(private readonly app: ServerApp) {}

  hide(): void {
    this.answer.replaceChildren(); // a secret
  }

  async show(): Promise<void> {
    const ask = async <Answer>(command: string) => (await this.app.api.ask(`api/admin/${command}`)).json() as Promise<Answer>;
    const [{ projects }, { keys }, { services }] = await Promise.all([
      ask<{ projects: Project[] }>("projects"), ask<{ keys: Key[] }>("keys"), ask<{ services: Usage[] }>("usage"),
    ]);
    this.element.replaceChildren(make("h1", {}, "Administration"), this.answer, make("h2", {}, "Projects"), this.projects(projects), make("h2", {}, "Keys and tokens"), this.keys(keys, projects),
                                 make("h2", {}, "Usage by service"), ...this.usage(services, projects));
  }

  // Runs COMMAND, and shows what it answers and what there is afterwards.
  private async change(command: string, parameters: Parameters, done: string): Promise<void> {
    const given = Object.keys(parameters).filter((name) => parameters[name] !== "").map((name) => `${name}=${encodeURIComponent(parameters[name])}`);
    try {
      const { dsn, token, deleted_chunks } = (await (await this.app.api.ask(`api/admin/${command}?${given.join("&")}`, "POST")).json()) as Changed;
      const secret = dsn || token, count = deleted_chunks === undefined ? "" : ` Chunks deleted: ${deleted_chunks}.`;
      this.answer.replaceChildren(`${done}${count}`, ...(secret ? [` ${dsn ? "DSN" : "Token, shown only here and now"}: `, make("code", {}, secret)] : []));
      await this.show();
    } catch (error) {
      this.answer.replaceChildren((error as Error).message);
    }
  }

  // A button that asks for FIELDS, or whether to go on, and then runs COMMAND.
  private action(label: string, title: string, fields: Field[], command: string, parameters: Parameters, done: string): HTMLElement {
    return button(label, title, async () => {
      const given = await askForm(title, fields, label.replace(/ ?…$/, ""));
      if (given) await this.change(command, { ...parameters, ...given }, done);
    });
  }

  private projects(projects: Project[]): HTMLElement {
    const rows = projects.map(({ project, name, keep_days, disk_megabytes, dsn }) => {
      const of = `project ${project} (${safe(name, 40)})`, id = { project: String(project) };
      const limits: Field[] = [{ name: "keep", label: "Days to keep (0: for ever)", value: String(keep_days ?? 14), type: "number" },
                               { name: "disk", label: "Megabytes (0: no limit)", value: String(disk_megabytes ?? 0), type: "number" }];
      return [String(project), safe(name, 60), keep_days === undefined ? "as the server" : keep_days ? `${keep_days} days` : "for ever", disk_megabytes ? `${disk_megabytes} MB` : "–",
              make("code", {}, dsn || "no key"), make("span", { class: "actions" },
                this.action("Rename …", `Rename ${of}`, [{ name: "name", label: "Name", value: name }], "rename-project", id, "The project has its new name."),
                this.action("Limits …", `Limits of ${of}`, limits, "limit-project", id, "The limits hold from now on."),
                this.action("Delete …", `Delete ${of} with its keys and all of its data`, [{ name: "", label: `Type ${project} to delete it`, value: "", mustBe: String(project) }], "delete-project", id, "The project is deleted."))];
    });
    const add = this.action("Add a project …", "Add a project", [{ name: "name", label: "Name", value: "" }], "add-project", {}, "The project is there.");
    return make("div", {}, listTable(["Number", "Name", "Kept", "Disk", "DSN", "Actions"], rows), make("p", {}, add));
  }

  private keys(keys: Key[], projects: Project[]): HTMLElement {
    const names = new Map(projects.map(({ project, name }) => [project, name] as [number, string]));
    const rows = keys.map(({ key, project, role, name, created }) => {
      const of = `key ${key}${name ? ` (${safe(name, 40)})` : ""}`, id = { key: String(key) };
      return [String(key), project === "all" ? "all" : `${project} ${safe(names.get(project) || "", 40)}`, role, safe(name, 60), agoText(secondsOf(created)), make("span", { class: "actions" },
        this.action("Rename …", `Rename ${of}`, [{ name: "name", label: "Name", value: name }], "rename-key", id, "The key has its new name."),
        this.action("Rotate …", `Give ${of} another secret; the one that it has is invalid at once`, [], "rotate-key", id, "The key has another secret."),
        this.action("Revoke …", `End ${of} at once`, [], "revoke-key", id, "The key is revoked."))];
    });
    const add: Field[] = [{ name: "project", label: "Project", value: "all", options: ["all", ...projects.map(({ project }) => String(project))] },
                          { name: "role", label: "Role", value: "read", options: ROLES }, { name: "name", label: "Name", value: "" }];
    return make("div", {}, listTable(["Number", "Project", "Role", "Name", "Made", "Actions"], rows), make("p", {}, this.action("Add a key …", "Add a key or token", add, "add-key", {}, "The key is there.")));
  }

  private usage(services: Usage[], projects: Project[]): HTMLElement[] {
    if (services.length === 0) return [hint("Nothing is stored.")];
    const number = new Unit("count", 0), names = new Map(projects.map(({ project, name }) => [project, name] as [number, string]));
    const rows = services.sort((a, b) => b.bytes - a.bytes).slice(0, USAGE_MAX).map(({ project, service, chunks, samples, bytes, last }) => {
      const fields: Field[] = [{ name: "to", label: "Until, as 2026-11-23T04:00:00Z (empty: all of it)", value: "", isOptional: true }];
      const remove = service ? this.action("Delete …", `Delete data of ${safe(service, 60)} in project ${project}`, fields, "delete", { project: String(project), service }, "The data is deleted.") : "";
      return [safe(service, 60) || "(no name)", `${project} ${safe(names.get(project) || "", 40)}`, number.number(chunks), number.number(samples), quantity(bytes, "bytes"), agoText(secondsOf(last)), make("span", { class: "actions" }, remove)];
    });
    return [listTable(["Service", "Project", "Chunks#", "Samples#", "On disk#", "Last", "Actions"], rows), ...(services.length > USAGE_MAX ? [hint(`The ${USAGE_MAX} largest of ${services.length}.`)] : [])];
  }
}

// What may be changed from the page, where its server allows it: first it is said what would be done.

import { counted, element, short } from "./fleet.js";

const WHAT = [["cordon", "Cordon nodes"], ["uncordon", "Uncordon nodes"], ["inject", "Inject a fault"], ["clear", "Clear a fault"], ["delete", "Delete a pod"]];
const OF_NODES = new Set(["cordon", "uncordon", "inject"]);

export class Changes {
  // nodes: gives the names of those that are chosen.
  constructor(place, kinds, nodes) {
    this.nodes = nodes;
    const option = ([value, textContent]) => element("option", { value, textContent });
    this.what = element("select", {}, ...WHAT.map(option));
    this.kind = element("select", {}, ...kinds.map((kind) => option([kind, kind])));
    this.name = element("input", { type: "text", placeholder: "name", maxLength: 63, autocomplete: "off" });
    this.pod = element("input", { type: "text", placeholder: "namespace/name", autocomplete: "off" });
    this.fields = { kind: element("label", {}, "Kind ", this.kind), name: element("label", {}, "Fault's name ", this.name), pod: element("label", {}, "Pod ", this.pod) };
    this.says = element("p", { role: "status" });
    this.go = element("button", { type: "button", textContent: "Do it", hidden: true, onclick: () => this.done() });
    const form = element("form", {}, element("label", {}, "Change ", this.what), ...Object.values(this.fields),
      element("button", { type: "submit", textContent: "What would it do?" }));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.plan();
    });
    this.what.addEventListener("change", () => this.choose());
    // What is said is of what was asked; another question takes it back.
    form.addEventListener("input", () => this.forget());
    place.replaceChildren(element("h2", { textContent: "Changes" }), form, this.says, this.go);
    place.hidden = false;
    this.choose();
  }

  choose() {
    const what = this.what.value;
    this.fields.kind.hidden = what !== "inject";
    this.fields.name.hidden = what !== "inject" && what !== "clear";
    this.fields.pod.hidden = what !== "delete";
    this.forget();
  }

  forget() {
    this.ticket = null;
    this.go.hidden = true;
    this.says.textContent = "";
  }

  async plan() {
    this.forget();
    const nodes = OF_NODES.has(this.what.value) ? this.nodes() : [];
    const asked = { do: this.what.value, nodes, kind: this.kind.value, name: this.name.value, pod: this.pod.value };
    const answer = await this.ask("plan", asked);
    this.says.textContent = answer.refused ?? `This would ${answer.says}`;
    this.ticket = answer.ticket;
    this.go.hidden = !answer.ticket;
    if (answer.ticket) this.go.textContent = this.fields.name.hidden && this.fields.pod.hidden ? `Do it on ${counted(nodes.length, "node")}` : "Do it";
  }

  async done() {
    const { ticket } = this;
    this.forget();
    const answer = await this.ask("do", { ticket });
    this.says.textContent = short(answer.refused ?? `Done: ${answer.done}`);
  }

  async ask(step, body) {
    try {
      const answer = await fetch(`changes/${step}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
      return answer.status === 403 ? { refused: await answer.text() } : await answer.json();
    } catch {
      return { refused: "This page's server does not answer." };
    }
  }
}

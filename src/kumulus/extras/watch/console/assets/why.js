// Why the pods of a job are where they are: what `kumulus experiment why` says of each, with a choice among them.

import { counted, element, number, short } from "./fleet.js";

const MOST_PODS = 500;

export class Why {
  // told: the lines, each once, and by pod the numbers of its lines; nothing where the run has not recorded it.
  constructor(told, letter = "") {
    this.told = told;
    this.select = element("select");
    this.select.addEventListener("change", () => this.say());
    this.count = element("span");
    this.text = element("pre", { tabIndex: 0, role: "region", "aria-label": `Why here? ${letter}` });
    this.place = element("div", { className: "why", hidden: true }, element("label", {}, "Why here? ", this.select), this.count, this.text);
    this.shown = "";
  }

  // The pods of a job that have, or had, a node at the moment.
  draw(history, job) {
    const pods = this.told && job >= 0 ? history.placed(job).filter((name) => Object.hasOwn(this.told.pods, name)) : [];
    this.place.hidden = !pods.length;
    const shown = JSON.stringify(pods);
    if (shown === this.shown) return;
    this.shown = shown;
    const was = this.select.value;
    this.select.replaceChildren(...pods.slice(0, MOST_PODS).map((value) => element("option", { value, textContent: short(value.split("/").pop()) })));
    if (pods.includes(was)) this.select.value = was;
    this.count.textContent = pods.length > MOST_PODS ? ` ${number(MOST_PODS)} of ${counted(pods.length, "pod")}` : "";
    this.say();
  }

  say() {
    const lines = this.select.value ? this.told.pods[this.select.value] : [];
    this.text.textContent = lines.map((line) => this.told.lines[line]).join("\n");
  }
}

// What is said of the node under the pointer or the cursor, with its pods.

import { counted, element, number, said, short } from "./fleet.js";

const MOST = 8;
const PAUSE = 80;

export class Tip {
  constructor(fleet, { place, canvas, peek }) {
    Object.assign(this, { fleet, place, canvas, peek });
    this.shown = "";
  }

  hide() {
    this.shown = "";
    this.place.hidden = true;
  }

  async show({ name, x, y }, size) {
    if (this.shown === name) return;
    this.shown = name;
    const node = this.fleet.nodes.get(name);
    this.place.replaceChildren(element("strong", { textContent: short(said(node)) }));
    if (node.product) this.place.append(element("div", { textContent: short(node.product) }));
    this.place.hidden = false;
    this.put(x, y + size + 8);
    // The pointer may only be passing by.
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
    if (this.shown !== name) return;
    const found = await this.peek(name);
    if (this.shown !== name || !found) return;
    this.place.append(pods(found.pods));
    this.put(x, y + size + 8);
  }

  put(x, y) {
    this.place.style.left = `${Math.max(0, Math.min(x, this.canvas.clientWidth - this.place.offsetWidth))}px`;
    this.place.style.top = `${y}px`;
  }
}

function pods(found) {
  const items = found.slice(0, MOST).map((pod) =>
    element("li", { textContent: `${short(`${pod.namespace}/${pod.name}`)} · ${pod.phase}${pod.gpus ? ` · ${counted(pod.gpus, "GPU")}` : ""}` }));
  if (found.length > MOST) items.push(element("li", { textContent: `and ${number(found.length - MOST)} more` }));
  return element("ul", {}, ...(items.length ? items : [element("li", { textContent: "no pods" })]));
}


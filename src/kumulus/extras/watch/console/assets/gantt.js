// Jobs over time, by queue: a row each, coloured by what they did. Only the rows in sight are drawn.

import { computed } from "./colours.js";
import { compare, counted, element, legend, short } from "./fleet.js";

const HEAD = 18;
// Of a window; where there is but one column, so high that whoever scrolls comes past it.
const MOST_HIGH = () => (innerWidth > 900 ? 0.65 * innerHeight : 260);
const COLOURS = { waiting: "--waiting", partly: "--partly", placed: "--placed", running: "--running" };

export class Gantt {
  constructor(place, history, { choose, span, letter = "" }) {
    Object.assign(this, { history, choose, span });
    this.chosen = -1;
    this.canvas = element("canvas", { role: "img", "aria-label": "Jobs over time, by queue" });
    this.inner = element("div", { className: "tall" }, this.canvas);
    this.frame = element("div", { className: "gantt", tabIndex: 0, role: "region", "aria-label": `Chart ${letter}` }, this.inner);
    this.cursor = element("div", { className: "cursor" });
    const key = element("p", { className: "key" }, ...legend(Object.keys(COLOURS).map((name) => [name, name])));
    place.replaceChildren(element("div", { className: "framed" }, this.frame, this.cursor), key);
    this.frame.addEventListener("scroll", () => this.draw());
    const job = ({ offsetY }) => this.rows.find(({ y, high }) => offsetY + this.frame.scrollTop >= y && offsetY + this.frame.scrollTop < y + high)?.job;
    this.canvas.addEventListener("pointermove", (event) => (this.canvas.title = short(history.jobs[job(event)]?.[0] ?? "")));
    this.canvas.addEventListener("click", (event) => job(event) !== undefined && this.choose(job(event)));
    new ResizeObserver(() => this.draw()).observe(this.frame);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.colours = null;
      this.draw();
    });
    this.arrange();
  }

  arrange() {
    const { history } = this;
    const queues = new Map();
    history.tally.forEach(({ first, spans }, job) => {
      if (first < 0) return;
      const told = history.facts.length ? this.facts(job) : [];
      const queue = told[1] ? history.queueOf(job, told[1]) : history.jobs[job][2];
      if (!queues.has(queue)) queues.set(queue, []);
      queues.get(queue).push({ job, first, spans });
    });
    const count = history.tally.length;
    const high = count > 400 ? 3 : count > 60 ? 6 : 12;
    let y = 0;
    this.rows = [];
    for (const [queue, jobs] of [...queues].sort(([a], [b]) => compare(a, b))) {
      this.rows.push({ y, high: HEAD, text: `${queue || "no queue"} · ${counted(jobs.length, "job")}` });
      y += HEAD;
      for (const job of jobs.sort((a, b) => a.first - b.first)) {
        this.rows.push({ y, high, ...job });
        y += high;
      }
    }
    this.tall = y + 2;
    this.inner.style.height = `${this.tall}px`;
    this.frame.style.height = `${Math.min(MOST_HIGH(), this.tall)}px`;
    this.draw();
  }

  // What was last said of a job, whatever the moment.
  facts(job) {
    const { events, facts } = this.history;
    this.last ??= new Map();
    for (let n = this.read ?? 0; n < events.length; n += 5) {
      if (events[n + 1] === 2 && events[n + 3] >= 0) this.last.set(events[n + 2], events[n + 3]);
    }
    this.read = events.length;
    return facts[this.last.get(job)] ?? [];
  }

  draw() {
    const width = this.frame.clientWidth;
    const height = this.frame.clientHeight;
    if (!width || !height) return;
    const scale = devicePixelRatio || 1;
    this.canvas.width = width * scale;
    this.canvas.height = height * scale;
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    const context = this.canvas.getContext("2d");
    context.scale(scale, scale);
    // Scrolling draws often, themes change seldom.
    this.colours ??= computed([...Object.values(COLOURS), "--quiet", "--focus"]);
    const { colours } = this;
    const { begin, end } = this.span();
    const x = (time) => ((time - begin) / (end - begin)) * width;
    const top = this.frame.scrollTop;
    context.font = `11px ${getComputedStyle(this.canvas).fontFamily}`;
    for (const row of this.rows) {
      const y = row.y - top;
      if (y + row.high < 0 || y > height) continue;
      if (row.text) {
        context.fillStyle = colours["--quiet"];
        context.fillText(row.text, 2, y + 13);
        continue;
      }
      row.spans.forEach(({ state, from }, n) => {
        const to = row.spans[n + 1]?.from ?? (state === "ended" ? from : this.history.end);
        if (!COLOURS[state]) return;
        context.fillStyle = colours[COLOURS[state]];
        context.fillRect(x(from), y, Math.max(1, x(to) - x(from)), Math.max(2, row.high - 1));
      });
      if (row.job === this.chosen) {
        context.strokeStyle = colours["--focus"];
        context.strokeRect(0.5, y - 0.5, width - 1, row.high);
      }
    }
  }

  at(time) {
    const { begin, end } = this.span();
    this.cursor.style.left = `${Math.max(0, Math.min(100, (100 * (time - begin)) / (end - begin)))}%`;
  }
}

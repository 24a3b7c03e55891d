// The last hour of the live fleet: its jobs and queues now, and whatever moment of it somebody goes back to.

import { Gantt } from "./gantt.js";
import { History } from "./history.js";
import { Jobs } from "./jobs.js";
import { Past } from "./past.js";
import { TimeLine } from "./time.js";

// What changes many times a second is drawn as often as it can be read.
const DRAW_EVERY = 500;
const CHART_EVERY = 5000;

export class Lately {
  constructor(fleet, { map, table, panel, announce, nodes, time, jobs, gantt }) {
    Object.assign(this, { fleet, map, table, panel, announce, nodes, places: { time, jobs, gantt } });
    // The fleet at the moment that is shown; null while that is now.
    this.past = null;
    this.all = null;
    this.drawn = this.charted = 0;
    fleet.addEventListener("past", ({ detail }) => (detail.whole ? this.begin(detail) : this.more(detail)));
    panel.closed = () => this.again();
  }

  begin(plain) {
    const history = new History(plain);
    this.all = new Past(history);
    const wall = new Intl.DateTimeFormat("en", { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
    const words = (at) => wall.format(history.about.beganMs + at);
    this.line = new TimeLine(this.places.time, [history], { live: true, move: (at) => this.move(at), words });
    this.jobs = new Jobs(this.places.jobs, this.all, { announce: this.announce, nodes: this.nodes, light: (...sets) => this.map.light(...sets), chose: (job) => {
      this.chart.chosen = job;
      this.chart.draw();
    } });
    this.chart = new Gantt(this.places.gantt, history, { span: () => this.line, choose: (job) => this.jobs.choose(job) });
    this.line.follow();
  }

  more(plain) {
    this.all.history.append(plain);
    this.all.grow();
    const now = performance.now();
    if (now - this.charted > CHART_EVERY) {
      this.charted = now;
      this.chart.arrange();
    }
    this.line.grew();
  }

  move(at) {
    const { following } = this.line;
    const shown = following ? null : this.all;
    this.all.seek(at);
    if (shown !== this.past) {
      this.past = shown;
      this.map.show(shown ?? this.fleet);
      this.table.fleet = shown ?? this.fleet;
      document.body.classList.toggle("past", Boolean(shown));
    } else if (shown) {
      this.map.paint();
    }
    this.chart.at(at);
    const now = performance.now();
    clearTimeout(this.due);
    if (now - this.drawn < DRAW_EVERY) {
      this.due = setTimeout(() => this.draw(), DRAW_EVERY);
      return;
    }
    this.draw();
  }

  draw() {
    this.drawn = performance.now();
    this.jobs.draw();
    if (!this.past) return;
    this.table.draw();
    this.panel.refresh();
  }

  // Other nodes are meant.
  again() {
    this.jobs?.again();
  }
}

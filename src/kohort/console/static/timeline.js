"use strict";
/* Chart of partition owners over time. The data comes with the page, then from its feed.
   Names are inserted as text only. */

const SVG = "http://www.w3.org/2000/svg";
function s(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

const SHAPES = {
  joined: "M0-5.5L5.5 4.5H-5.5Z",
  left: "M0 5.5L5.5-4.5H-5.5Z",
  changed: "M0-6L6 0L0 6L-6 0Z",
  failed: "M-5-2L-2-5L0-3L2-5L5-2L3 0L5 2L2 5L0 3L-2 5L-5 2L-3 0Z",
  unknown: "M-4.5 0A4.5 4.5 0 1 0 4.5 0A4.5 4.5 0 1 0-4.5 0Z",
};
const SHAPE_LABELS = { joined: "member joined", left: "member left", changed: "subscription or assignor changed", failed: "member failed", unknown: "new generation" };
const STEPS = [5e3, 15e3, 3e4, 6e4, 3e5, 6e5, 9e5, 18e5, 36e5];
const clock = (ms, step) => new Date(ms).toISOString().slice(11, step >= 6e4 ? 16 : 19);
const rect = (x, y, w, h) => `M${x.toFixed(1)} ${y.toFixed(1)}h${w.toFixed(1)}v${h.toFixed(1)}h${(-w).toFixed(1)}z`;
const startOf = (each) => each.started_ms ?? each.ended_ms;
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

class Timeline {
  constructor(host, data) {
    this.host = host;
    this.span = 900000;
    this.chosen = null;
    this.chart = s("svg", { tabindex: "0", role: "application", "aria-describedby": "selected" });
    this.lag = s("svg", { role: "img" });
    host.append(this.chart, this.lag);
    this.chart.addEventListener("keydown", (event) => this.key(event));
    this.chart.addEventListener("pointermove", (event) => this.point(event));
    this.chart.addEventListener("pointerleave", () => { tip.hidden = true; });
    this.chart.addEventListener("click", (event) => this.open(event));
    this.update(data);
  }

  update(data) {
    this.data = data;
    this.updateLegend();
    this.draw();
    if (this.chosen !== null && !data.rebalances.some((each) => each.key === this.chosen)) this.chosen = null;
  }

  choose(span) {
    this.span = span;
    document.querySelectorAll("[data-span]").forEach((each) => each.setAttribute("aria-pressed", Number(each.dataset.span) === span));
    this.draw();
  }

  draw() {
    const { partitions, rebalances } = this.data;
    const width = this.host.clientWidth;
    if (!width) return;
    const rows = partitions.length;
    const cap = width < 560 ? 84 : 190;
    const longest = Math.max(0, ...partitions.map((label) => label.length));
    this.gutter = Math.min(cap, Math.max(38, longest * 6.4 + 10));
    this.top = 34;
    this.step = rows <= 16 ? 17 : rows <= 32 ? 12 : rows <= 64 ? 8 : 4;
    this.width = width - this.gutter - 12;
    const bottom = this.top + Math.max(rows, 1) * this.step + 2;
    this.to = serverNow();
    this.from = this.to - this.span;
    this.x = (ms) => this.gutter + ((ms - this.from) / this.span) * this.width;
    this.at = (x) => this.from + ((x - this.gutter) / this.width) * this.span;
    const clip = s("clipPath", { id: "plot" }, s("rect", { x: this.gutter, y: 0, width: this.width, height: bottom }));
    this.chart.setAttribute("viewBox", `0 0 ${width} ${bottom + 22}`);
    this.chart.setAttribute("height", bottom + 22);
    this.chart.setAttribute("aria-label", `Timeline of ${rebalances.length} rebalances over ${rows} partitions. Left and right arrow keys select a rebalance, Enter opens it.`);
    this.chart.replaceChildren(clip, ...this.labels(cap),
      s("g", { "clip-path": "url(#plot)" }, ...this.ownership(bottom), ...this.bands(bottom)), ...this.marks(), ...this.axis(bottom));
    this.drawLag(width);
  }

  labels(cap) {
    const charsMax = Math.floor((cap - 10) / 6.4);
    const every = Math.ceil(12 / this.step);
    return this.data.partitions.flatMap((label, row) => {
      if (row % every) return [];
      const shown = label.length > charsMax ? `…${label.slice(1 - charsMax)}` : label;
      return [s("text", { x: this.gutter - 6, y: this.top + row * this.step + Math.min(this.step, 14) - 3, "text-anchor": "end" }, shown, s("title", {}, label))];
    });
  }

  /* One path per color, for any number of partitions. */
  ownership(bottom) {
    const thick = this.step - (this.step > 6 ? 2 : 0.5);
    const held = {};
    for (const [who, row, begin, end] of this.data.intervals) {
      const a = Math.max(begin ?? this.from, this.from);
      const b = Math.min(end ?? this.to, this.to);
      if (b < this.from || a > this.to) continue;
      (held[who % 10] ||= []).push(rect(this.x(a), this.top + row * this.step, Math.max(this.x(b) - this.x(a), 1), thick));
    }
    const background = this.data.partitions.map((_, row) => rect(this.gutter, this.top + row * this.step, this.width, thick)).join("");
    return [s("path", { class: "row", d: background || rect(this.gutter, this.top, this.width, bottom - this.top) }),
      ...Object.entries(held).map(([color, list]) => s("path", { class: `p${color}`, d: list.join("") }))];
  }

  bands(bottom) {
    const made = [];
    let labelled = -Infinity;
    for (const each of this.data.rebalances) {
      const begin = startOf(each);
      const end = each.ended_ms ?? this.to;
      if (end < this.from) continue;
      const on = each.key === this.chosen ? " on" : "";
      const [a, b] = [this.x(begin), this.x(end)];
      if (each.started_ms !== null) made.push(s("path", { class: `band${on}${each.ended_ms === null ? " in-progress" : ""}`, d: rect(a, this.top - 2, Math.max(b - a, 1), bottom - this.top) }));
      made.push(s("path", { class: `stem${on}`, d: `M${a.toFixed(1)} 16V${bottom}`, fill: "none" }));
      if (each.ending === "stable" && b - labelled > 34) {
        made.push(s("text", { x: (b + 3).toFixed(1), y: 30, "aria-hidden": "true" }, String(each.generation)));
        labelled = b;
      }
    }
    return made;
  }

  marks() {
    return this.data.rebalances.filter((each) => startOf(each) >= this.from).map((each) => s("path", {
      class: `mark ${each.kind}${each.key === this.chosen ? " on" : ""}`, d: SHAPES[each.kind],
      transform: `translate(${this.x(startOf(each)).toFixed(1)} 10)`,
    }));
  }

  axis(y) {
    const step = STEPS.find((each) => this.span / each <= this.width / 70) || STEPS.at(-1);
    const ticks = [];
    for (let at = Math.ceil(this.from / step) * step; at <= this.to; at += step) {
      const x = this.x(at).toFixed(1);
      ticks.push(s("path", { class: "axis", d: `M${x} ${y}v5`, fill: "none" }));
      if (this.x(at) - this.gutter > 14 && this.gutter + this.width - this.x(at) > 14) {
        ticks.push(s("text", { x, y: y + 17, "text-anchor": "middle" }, clock(at, step)));
      }
    }
    return ticks;
  }

  drawLag(width) {
    const known = this.data.lag.filter(([at, lag]) => lag !== null && at >= this.from - 60000);
    if (this.lag.toggleAttribute("hidden", known.length < 2)) return;
    const tall = 60;
    const most = Math.max(1, ...known.map(([, lag]) => lag));
    const y = (lag) => 8 + (1 - lag / most) * (tall - 8);
    const points = known.map(([at, lag]) => `${this.x(at).toFixed(1)} ${y(lag).toFixed(1)}`);
    const clip = s("clipPath", { id: "lag" }, s("rect", { x: this.gutter, y: 0, width: this.width, height: tall + 1 }));
    this.lag.setAttribute("viewBox", `0 0 ${width} ${tall + 6}`);
    this.lag.setAttribute("height", tall + 6);
    this.lag.setAttribute("aria-label", `Lag over time: at most ${most} records, ${known.at(-1)[1]} now.`);
    this.lag.replaceChildren(clip,
      s("text", { x: this.gutter - 6, y: 14, "text-anchor": "end" }, compact.format(most)),
      s("text", { x: this.gutter - 6, y: tall, "text-anchor": "end" }, "lag 0"),
      s("path", { class: "axis", fill: "none", d: `M${this.gutter} ${tall + 0.5}h${this.width}` }),
      s("g", { "clip-path": "url(#lag)" },
        s("path", { class: "lagfill", d: `M${this.x(known[0][0]).toFixed(1)} ${tall}L${points.join("L")}L${this.x(known.at(-1)[0]).toFixed(1)} ${tall}Z` }),
        s("path", { class: "lagline", d: `M${points.join("L")}` })));
  }

  updateLegend() {
    const item = (shape, label) => {
      const line = document.createElement("li");
      line.append(shape, label);
      line.title = label;
      return line;
    };
    const kinds = Object.keys(SHAPES).filter((kind) => this.data.rebalances.some((each) => each.kind === kind));
    const names = this.data.names.slice(0, 14);
    const parts = [
      ...kinds.map((kind) => item(s("svg", { viewBox: "-6 -6 12 12", "aria-hidden": "true" }, s("path", { class: kind, d: SHAPES[kind] })), SHAPE_LABELS[kind])),
      ...names.map((name, who) => item(s("svg", { viewBox: "0 0 11 11", "aria-hidden": "true" }, s("rect", { class: `p${who % 10}`, width: 11, height: 11, rx: 2 })), name)),
    ];
    const more = this.data.names.length - names.length;
    if (more > 0) parts.push(item("", `and ${more} more`));
    if (this.data.partitions_left_out) parts.push(item("", `${this.data.partitions_left_out} partitions not shown`));
    byId("legend").replaceChildren(...parts);
  }

  select(each) {
    this.chosen = each.key;
    const at = document.createElement("b");
    at.textContent = clock(startOf(each), 0);
    const link = document.createElement("a");
    link.href = each.href;
    link.textContent = "details";
    byId("selected").replaceChildren(at, `, generation ${each.generation}: ${each.text} `, link);
    if (startOf(each) < this.from) this.choose(3600000);
    this.draw();
  }

  key(event) {
    const all = this.data.rebalances;
    const now = all.findIndex((each) => each.key === this.chosen);
    const moves = { ArrowRight: Math.min(now + 1, all.length - 1), ArrowLeft: now < 0 ? all.length - 1 : Math.max(now - 1, 0), Home: 0, End: all.length - 1 };
    if (event.key === "Enter" && now >= 0) location.href = all[now].href;
    else if (moves[event.key] !== undefined && all.length) this.select(all[moves[event.key]]);
    else return;
    event.preventDefault();
  }

  near(x) {
    let [best, distance] = [null, 9];
    for (const each of this.data.rebalances) {
      const [a, b] = [this.x(startOf(each)), this.x(each.ended_ms ?? this.to)];
      const away = x < a ? a - x : x > b ? x - b : 0;
      if (away < distance) [best, distance] = [each, away];
    }
    return best;
  }

  position(event) {
    const box = this.chart.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  point(event) {
    const [x, y] = this.position(event);
    if (y < this.top - 4) {
      const each = this.near(x);
      showTip(event, "");
      if (each && each.key !== this.chosen) this.select(each);
      return;
    }
    showTip(event, x < this.gutter ? "" : this.ownerText(Math.floor((y - this.top) / this.step), this.at(x)));
  }

  open(event) {
    const [x, y] = this.position(event);
    const each = y < this.top - 4 ? this.near(x) : null;
    if (each) location.href = each.href;
  }

  ownerText(row, ms) {
    const partition = this.data.partitions[row];
    if (partition === undefined) return "";
    const interval = this.data.intervals.find(([, r, a, b]) => r === row && ms >= (a ?? 0) && ms < (b ?? Infinity));
    if (!interval) return `${partition}: no owner`;
    const [who, , a, b] = interval;
    const since = a === null ? "since before the oldest known rebalance" : `from ${clock(a, 0)}`;
    return `${partition}: ${this.data.names[who]} (${this.data.hosts[who]}), ${since}${b === null ? " until now" : ` to ${clock(b, 0)}`}`;
  }
}

const timeline = new Timeline(byId("timeline"), JSON.parse(byId("chart-data").textContent));
const oldest = Math.min(...timeline.data.rebalances.map(startOf), Infinity);
timeline.choose([300000, 900000].find((span) => serverNow() - oldest < span * 0.9) || (oldest === Infinity ? 300000 : 3600000));
listeners.chart.push((data) => timeline.update(data));
document.querySelectorAll("[data-span]").forEach((each) => each.addEventListener("click", () => timeline.choose(Number(each.dataset.span))));
setInterval(() => timeline.draw(), 1000);
addEventListener("resize", () => timeline.draw());

/* The details of one group: what happened, who started it, what it cost, what to change. */

const LONG = 20;
const QUESTIONS = { why: "Why does it rebalance?", who: "Who started it?", cost: "What did it cost?", change: "What should I change?" };

const unpack = ({ columns, rows }) =>
  rows.map((row) => Object.fromEntries(columns.map((name, i) => [name, row[i]])));

function showGroup(article, group, index) {
  const rebalances = unpack(group.rebalances);
  const line = lines.find(({ row }) => row.querySelector("th").firstElementChild.textContent === group.id);
  const parts = [
    h("header", {}, navigation(index),
      h("h1", {}, h("bdi", {}, group.id), line ? line.row.querySelector(".status").cloneNode(true) : null),
      h("p", { class: "meta" }, `${group.about} ${group.knowledge}`)),
    h("dl", { class: "answers" }, Object.entries(QUESTIONS).map(([name, question]) =>
      h("div", {}, h("dt", {}, question), h("dd", {}, group.answers[name])))),
  ];
  let charts = [];
  const select = (chosen, isFocus) => {
    charts.forEach((chart) => chart.choose(chosen, isFocus));
    article.querySelector("#rebalance-text").replaceChildren(...rebalanceText(rebalances[chosen], group));
    article.querySelectorAll("tr[data-i]").forEach((row) =>
      row.classList.toggle("on-row", Number(row.dataset.i) === chosen));
  };
  const timeline = new Timeline(group, rebalances, select);
  charts = [timeline];
  parts.push(...findings(group, timeline));
  if (group.partitions.length || group.lag.length || rebalances.length) parts.push(...timelinePart(group, rebalances, timeline));
  if (rebalances.filter((each) => each.duration_ms !== null).length > 1) {
    const bars = new Durations(rebalances, select);
    charts.push(bars);
    parts.push(...durationsPart(rebalances, bars));
  }
  if (rebalances.length) parts.push(...rebalanceTable(group, rebalances, select, timeline));
  parts.push(...clientTable(group, timeline), ...laggingTable(group));
  if (group.omitted.length) parts.push(h("footer", { class: "notes" }, group.omitted.map((each) => h("p", {}, each))));
  article.replaceChildren(...parts);
  const draw = () => charts.forEach((chart) => chart.draw());
  draw();
  onresize = draw;
}

function navigation(index) {
  const link = (to, words) => (head.details[to] === undefined ? null
    : h("a", { href: `#group=${encode(head.details[to])}`, title: head.details[to] }, words));
  return h("nav", { class: "way", "aria-label": "Groups" }, h("a", { href: "#" }, "← All groups"),
    h("span", {}, link(index - 1, "Previous"), link(index + 1, "Next")));
}

/* A client, and its host below. */
function client(name) {
  const cut = name.lastIndexOf(" at /");
  const client = cut < 0 ? name : name.slice(0, cut);
  const short = client.length <= 26 ? "short" : null;
  return [h("bdi", { class: short }, client), cut < 0 ? null : h("small", {}, name.slice(cut))];
}

/* ---- findings ---- */

function findings(group, timeline) {
  if (!group.findings.length) return [];
  return [h("h2", {}, "Findings"), h("ul", { class: "findings" }, group.findings.map((each) => {
    const show = () => {
      const pad = Math.max((each.to_ms - each.from_ms) * 0.1, 15000);
      timeline.zoom(each.from_ms - pad, each.to_ms + pad);
      timeline.picture.scrollIntoView({ block: "center" });
      timeline.picture.focus({ preventScroll: true });
    };
    const hasTime = each.from_ms !== null && each.to_ms !== null;
    const saved = each.would_have_saved_ms
      ? h("small", {}, `would have saved up to ${duration(each.would_have_saved_ms)} of partition time`) : null;
    return h("li", {},
      h("h3", {}, h("span", { class: `severity ${each.severity}` }, each.severity), each.finding.replaceAll("-", " "),
        hasTime ? h("small", {}, time(each.from_ms), " to ", time(each.to_ms), " ",
          h("button", { type: "button", class: "plain", onclick: show }, "show on the timeline")) : null),
      h("p", {}, each.what), h("p", { class: "advice" }, each.advice),
      each.setting ? h("p", { class: "setting" }, h("code", {}, each.setting), saved)
        : saved && h("p", { class: "setting" }, saved));
  }))];
}

/* ---- the timeline, and the text about one rebalance ---- */

function timelinePart(group, rebalances, timeline) {
  const zoom = (label, words, act) => h("button", { type: "button", "aria-label": words, title: words, onclick: act }, label);
  const about = group.partitions.length ? "The owner of each partition. Drag to zoom; hover over a mark to read about the rebalance."
    : "No partition had an owner.";
  const shapes = Object.keys(SHAPES).filter((kind) => rebalances.some((each) => kindOf(each.trigger) === kind));
  const swatch = (name, words) => h("li", { title: words }, s("svg", { viewBox: "0 0 11 11", "aria-hidden": "true" },
    s("rect", { class: name, width: 11, height: 11, rx: 2 })), words);
  const mark = (kind) => h("li", {}, s("svg", { viewBox: "-6 -6 12 12", "aria-hidden": "true" },
    s("path", { class: kind, d: SHAPES[kind] })), KIND_WORDS[kind]);
  const isLong = ({ from_ms: from, to_ms: to }) => (to ?? timeline.whole[1]) - from > (timeline.whole[1] - timeline.whole[0]) / 400;
  const owners = [...new Set(group.ownership.map(([who]) => who))].sort((a, b) => a - b);
  const shown = owners.slice(0, 14);
  return [h("h2", {}, "Timeline"), h("div", { class: "chart" },
    h("div", { class: "head" }, h("span", {}, about), h("span", { class: "zoom", role: "group", "aria-label": "Zoom" },
      zoom("+", "Zoom in", () => timeline.scale(0.5)), zoom("−", "Zoom out", () => timeline.scale(2)),
      zoom("All", "Show the whole time range", () => timeline.zoom(...timeline.whole)))),
    timeline.element,
    h("ul", { class: "legend" }, shapes.map(mark), timeline.hasGaps ? swatch("gap", "without owner") : null,
      group.empty_periods.some(isLong) ? swatch("away", "the group had no members") : null,
      shown.map((who) => swatch(`p${who % 10}`, group.names[who])),
      owners.length > shown.length ? h("li", {}, `and ${owners.length - shown.length} more`) : null),
    rebalances.length ? h("p", { class: "rebalance-text", id: "rebalance-text", "aria-live": "polite" },
      h("span", { class: "q" }, "Hover over a mark above, or focus the timeline and press ← or →, to read about a rebalance."))
      : h("p", { class: "rebalance-text", id: "rebalance-text" }, "No rebalance in this time range."))];
}

function rebalanceText(each, group) {
  const name = (who) => h("b", {}, h("bdi", {}, group.names[who]));
  const some = (numbers, total) => numbers.flatMap((who, i) => [i ? ", " : "", name(who)])
    .concat(total > numbers.length ? ` and ${total - numbers.length} more` : "");
  const said = [time(startOf(each)), ": "];
  const generations = each.generation_before === null ? `generation ${each.generation}`
    : `generation ${each.generation_before} → ${each.generation ?? "?"}`;
  said.push(`rebalance of ${generations}, started because ${head.triggers[each.trigger] || each.trigger || "of an unknown cause"}`);
  if (each.initiator !== null) said.push(": ", name(each.initiator));
  said.push(each.is_exact ? ". " : ` (${percent(each.confidence ?? 0)} confidence). `);
  if (each.client_reason) said.push("Reason given by the client: “", h("i", {}, each.client_reason), "”. ");
  said.push(...took(each, name));
  if (each.ending && each.ending !== "stable") said.push(`Result: ${head.endings[each.ending] || each.ending}. `);
  if (each.joined_total) said.push("Joined: ", ...some(each.joined, each.joined_total), ". ");
  if (each.departed_total) said.push("Left: ", ...some(each.departed, each.departed_total), ". ");
  const costs = [];
  if (each.moved) costs.push(`${counted(each.moved, "partition")} reassigned${each.moved_needlessly ? ` (${number(each.moved_needlessly)} needlessly)` : ""}`);
  if (each.ownerless_ms) costs.push(`${duration(each.ownerless_ms)} of partition time without owner${each.is_exact ? "" : " (estimate)"}`);
  if (each.replayed) costs.push(`${counted(each.replayed, "record")} reprocessed`);
  if (costs.length) said.push(`Cost: ${costs.join("; ")}.`);
  return said;
}

function took(each, name) {
  if (each.duration_ms === null) return ["Its duration is unknown. "];
  const said = [`It took ${each.is_exact ? "" : "about "}${duration(each.duration_ms)}`];
  if (each.join_ms !== null && each.sync_ms !== null) {
    said.push(`: ${duration(each.join_ms)} until all members had joined`);
    if (each.slowest !== null && each.slowest_join_ms > 0) said.push(" (", name(each.slowest), " last)");
    said.push(`, ${duration(each.sync_ms)} until the assignment was stored`);
  }
  said.push(". ");
  return said;
}

function durationsPart(rebalances, bars) {
  const hasPhases = rebalances.some((each) => each.join_ms !== null && each.sync_ms !== null);
  const swatch = (name, words) => h("li", {}, s("svg", { viewBox: "0 0 11 11", "aria-hidden": "true" },
    s("rect", { class: name, width: 11, height: 11, rx: 2 })), words);
  return [h("h2", {}, "Duration of each rebalance"), h("div", { class: "chart" }, bars.element,
    h("ul", { class: "legend" }, hasPhases ? [swatch("join", "join phase"), swatch("sync", "sync phase")] : null,
      rebalances.some((each) => each.duration_ms !== null && (each.join_ms === null || each.sync_ms === null))
        ? swatch("whole", hasPhases ? "phases unknown" : "total; phases are only known with Kohort's events") : null))];
}

/* ---- tables ---- */

function table(heads, rows, caption) {
  const made = h("table", {}, h("caption", { class: "hidden" }, caption), h("thead", {}, h("tr", {}, heads.map(([words, kind]) =>
    h("th", { scope: "col", class: kind, "aria-sort": kind === "grow" ? null : "none" },
      kind === "grow" ? words : h("button", { type: "button" }, words))))), h("tbody", {}, rows));
  sortable(made);
  const parts = [h("div", { class: "frame" }, made)];
  if (rows.length > LONG) {
    rows.slice(LONG).forEach((row) => { row.hidden = true; });
    const more = h("p", { class: "more" }, h("button", { type: "button", class: "plain", onclick: () => {
      rows.forEach((row) => { row.hidden = false; });
      more.remove();
    } }, `Show all ${number(rows.length)}`));
    parts.push(more);
    made.tHead.addEventListener("click", () => more.isConnected && [...made.tBodies[0].rows].forEach((row, i) => { row.hidden = i >= LONG; }));
  }
  return parts;
}

const cell = (value, words, kind = "n") => h("td", { class: kind, "data-v": value ?? -1 }, words ?? "");
const dash = (n) => (n === null ? "" : number(n));

function rebalanceTable(group, rebalances, select, timeline) {
  const heads = [["Started", ""], ["Cause", ""], ["Started by", ""], ["Duration", "n"], ["Members", "n"], ["Reassigned", "n"],
    ["Needlessly", "n"], ["Without owner", "n"], ["Reprocessed", "n"], ["Result", ""]];
  const rows = rebalances.map((each, index) => {
    const show = () => { select(index, true); timeline.element.scrollIntoView({ block: "center" }); };
    const doubt = each.is_exact ? null : h("small", {}, ` ${percent(each.confidence ?? 0)} confidence`);
    return h("tr", { "data-i": index },
      h("td", { class: "num", "data-v": startOf(each) ?? -1 }, h("button", { type: "button", class: "plain", onclick: show, title: "Show on the timeline" }, startOf(each) === null ? "?" : time(startOf(each)))),
      h("td", {}, (each.trigger || "unknown").replaceAll("-", " "), doubt),
      h("td", { class: "who" }, each.initiator === null ? "" : client(group.names[each.initiator])),
      cell(each.duration_ms, each.duration_ms === null ? "" : duration(each.duration_ms)),
      cell(each.members_after, `${each.members_before ?? "?"} → ${each.members_after ?? "?"}`),
      cell(each.moved, dash(each.moved)), cell(each.moved_needlessly, dash(each.moved_needlessly)),
      cell(each.ownerless_ms, each.ownerless_ms ? duration(each.ownerless_ms) : ""), cell(each.replayed, dash(each.replayed)),
      h("td", {}, head.endings[each.ending] || each.ending || "in progress"));
  }).reverse();
  return [h("h2", {}, "Rebalances, latest first"), ...table(heads, rows, "Rebalances")];
}

function clientTable(group, timeline) {
  if (!group.clients.length) return [];
  const [from, to] = timeline.whole;
  const x = (ms) => ((ms - from) / (to - from)) * 300;
  const rows = group.clients.map((each) => {
    const memberships = unpack(each.memberships);
    const paths = memberships.map((membership) => {
      const [a, b] = atLeast(x(Math.max(membership.from_ms, from)), x(membership.to_ms ?? to), 1.2);
      return rect(a, 1, Math.max(b - a - 0.8, 0.8), 12);
    });
    const last = memberships.at(-1);
    const ending = last.to_ms === null ? "member" : head.departures[last.ending] || last.ending || "gone";
    const words = memberships.slice(-6).map((membership) => `${shortTime(membership.from_ms)} to ${membership.to_ms === null ? "now" : `${shortTime(membership.to_ms)} (${head.departures[membership.ending] || membership.ending || "gone"})`}`).join("; ");
    return h("tr", {}, h("th", { scope: "row", class: "who" }, client(group.names[each.name])),
      h("td", { class: "grow" }, s("svg", { class: "memberships", viewBox: "0 0 300 14", preserveAspectRatio: "none", role: "img", "aria-label": words },
        s("rect", { class: "row", width: 300, height: 14 }), s("path", { class: `p${each.name % 10}`, d: paths.join("") }), s("title", {}, words))),
      cell(memberships.length, number(memberships.length)), cell(each.rebalances_started, each.rebalances_started ? number(each.rebalances_started) : ""),
      h("td", {}, ending, last.to_ms === null ? null : h("small", {}, " ", time(last.to_ms))));
  });
  return [h("h2", {}, "Members"),
    ...table([["Client", ""], ["Membership over time", "grow"], ["Memberships", "n"], ["Rebalances started", "n"], ["Status", ""]], rows, "Members")];
}

function laggingTable(group) {
  const rows = unpack(group.lagging_partitions).map((each) => h("tr", {},
    h("th", { scope: "row" }, h("bdi", {}, `${each.topic}-${each.partition}`)),
    h("td", {}, h("span", { class: `lag-${each.status}` }, each.status)),
    cell(each.lag_records, dash(each.lag_records)), h("td", {}, each.reason),
    h("td", { class: "num", "data-v": each.since_ms ?? -1 }, each.since_ms === null ? "" : time(each.since_ms)),
    h("td", { class: "who" }, each.owner === null ? "none" : client(each.owner))));
  if (!rows.length) return [];
  return [h("h2", {}, "Lagging partitions"),
    ...table([["Partition", ""], ["Status", ""], ["Lag", "n"], ["Reason", ""], ["Since", ""], ["Owner", ""]], rows, "Lag")];
}

"use strict";
/* Common to all pages: theme, keyboard shortcuts, times, and live updates from the feed.
   The feed contains HTML that the server has escaped; scripts in it would not run. */

const byId = (id) => document.getElementById(id);
const listeners = { chart: [] };

/* Ages use the server's clock, because the browser's may be wrong. */
const skew = Number(document.body.dataset.now) - Date.now();
const serverNow = () => Date.now() + skew;

/* ---- theme ---- */

const root = document.documentElement;
byId("theme").addEventListener("click", () => {
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  document.cookie = `kohort-theme=${root.dataset.theme}; path=/; max-age=31536000; samesite=strict`;
});

/* ---- times ---- */

function ago(ms) {
  const s = Math.max(0, Math.round((serverNow() - ms) / 1000));
  if (s < 60) return `${s} s ago`;
  if (s < 3600) return `${Math.floor(s / 60)} min ago`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ago`;
  return `${Math.floor(s / 86400)} d ago`;
}
function updateTimes() {
  for (const each of document.querySelectorAll("time[data-ms]")) {
    const ms = Number(each.dataset.ms);
    const at = new Date(ms);
    each.title = `${at.toISOString().replace("T", " ").slice(0, 23)} UTC; local time ${at.toLocaleString()}`;
    const isOld = serverNow() - ms > 86400000;
    const text = isOld ? at.toISOString().slice(0, 10) : at.toISOString().slice(11, 19);
    if (each.textContent !== text) each.textContent = text;
    if (each.closest("td.n") && !each.closest("a")) each.textContent = ago(ms);
  }
}

/* ---- tooltip ---- */

const tip = byId("tip");
function showTip(event, text) {
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8))}px`;
  const below = event.clientY + 18;
  tip.style.top = `${below + box.height > innerHeight ? event.clientY - box.height - 10 : below}px`;
}

/* ---- the feed ---- */

function replacePart(region, html) {
  const focused = region.contains(document.activeElement) ? document.activeElement : null;
  if (focused && focused.matches("input, select, textarea")) return;
  const href = focused && focused.getAttribute("href");
  region.innerHTML = html;
  if (href) [...region.querySelectorAll("a")].find((each) => each.getAttribute("href") === href)?.focus({ preventScroll: true });
  updateTimes();
}

function setConnection(state, label) {
  const shown = byId("connection");
  if (shown.dataset.state === state) return;
  shown.dataset.state = state;
  shown.firstElementChild.textContent = label;
}

function follow() {
  const feed = new EventSource(document.body.dataset.feed);
  feed.addEventListener("open", () => setConnection("live", "live"));
  feed.addEventListener("error", () => {
    setConnection("lost", "console unreachable");
    // After an error response the browser does not retry by itself.
    if (feed.readyState === EventSource.CLOSED) setTimeout(follow, 3000);
  });
  feed.addEventListener("part", (event) => {
    const { name, html } = JSON.parse(event.data);
    const region = document.querySelector(`[data-live="${CSS.escape(name)}"]`);
    if (region && region.dataset.html !== html) { region.dataset.html = ""; replacePart(region, html); }
  });
  feed.addEventListener("health", (event) => replacePart(byId("health"), JSON.parse(event.data).html));
  feed.addEventListener("chart", (event) => listeners.chart.forEach((each) => each(JSON.parse(event.data))));
  addEventListener("pagehide", () => feed.close(), { once: true });
}

/* ---- keyboard ---- */

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const isTyping = event.target.matches("input, select, textarea");
  if (event.key === "Escape" && isTyping) return event.target.blur();
  if (isTyping) return undefined;
  const find = byId("find");
  if (event.key === "/") {
    event.preventDefault();
    if (find) find.focus();
    else location.href = "/groups#find";
  }
  const pages = { o: "/overview", g: "/groups", t: "/topics", f: "/findings" };
  const link = pages[event.key] && document.querySelector(`.bar nav a[href="${pages[event.key]}"]`);
  if (link) link.click();
  return undefined;
});
if (location.hash === "#find" && byId("find")) byId("find").focus();

updateTimes();
setInterval(updateTimes, 5000);
follow();

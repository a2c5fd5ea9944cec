"use strict";
(() => {
const content = JSON.parse(document.getElementById("content").textContent);
const byId = (name) => document.getElementById(name);
const storageKey = `iosig-reviews/${content.release_id}/${content.reviewer}`;
const runKey = (run) => JSON.stringify(Object.values(run.key));
const reviews = load();
let place = Math.max(0, content.runs.findIndex((run) => !isComplete(run)));

// Browsers may deny storage to local files; the page then keeps reviews until it is closed.
function load() {
  try { return JSON.parse(localStorage.getItem(storageKey)) || {}; } catch { return {}; }
}

function keep() {
  try { localStorage.setItem(storageKey, JSON.stringify(reviews)); } catch { /* see load */ }
}

function reviewOf(run) { return reviews[runKey(run)] || {}; }

function isComplete(run) {
  const review = reviewOf(run);
  return Boolean(review.label_verdict) && (run.period_s === null || Boolean(review.period_verdict));
}

function decide(change) {
  const run = content.runs[place];
  reviews[runKey(run)] = { ...reviewOf(run), ...change, reviewed_at: new Date().toISOString() };
  keep();
  if (isComplete(run) && place + 1 < content.runs.length) move(1); else show();
}

function move(step) {
  place = Math.min(content.runs.length - 1, Math.max(0, place + step));
  show();
}

// ---- texts

function withUnit(value, units) {
  const [size, name] = units.find(([size]) => value >= size) || units[units.length - 1];
  return [value / size, size, name];
}

const TIMES = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
const RATES = [[1e12, "TB/s"], [1e9, "GB/s"], [1e6, "MB/s"], [1e3, "kB/s"], [1, "B/s"]];

function timeText(seconds) {
  const [value, , name] = withUnit(seconds, TIMES);
  return `${value.toPrecision(3)} ${name}`;
}

// ---- the picture

const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--iosig-${name}`).trim();

function draw(run) {
  const canvas = byId("series"), width = canvas.clientWidth, height = canvas.clientHeight, ratio = devicePixelRatio || 1;
  canvas.width = width * ratio; canvas.height = height * ratio;
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  const [left, right, top, bottom] = [70, 10, 10, 42];
  const end = Math.max(run.duration_s, run.start_s + run.step_s * run.bytes_per_s.length);
  const peak = Math.max(1, ...run.bytes_per_s.map((rate) => rate ?? 0));
  const x = (s) => left + (Math.max(0, s) / end) * (width - left - right);
  const y = (rate) => height - bottom - (rate / peak) * (height - top - bottom);
  context.font = getComputedStyle(document.body).font;

  // quarters of the run, which the classes compare
  context.strokeStyle = color("pale");
  for (let quarter = 1; quarter < 4; quarter++) line(context, [[x(run.duration_s * quarter / 4), top], [x(run.duration_s * quarter / 4), height - bottom]]);
  run.bytes_per_s.forEach((rate, index) => {
    const from = x(run.start_s + run.step_s * index), until = x(run.start_s + run.step_s * (index + 1));
    context.fillStyle = rate === null ? color("vermilion") : color(run.is_exact ? "blue" : "gray");
    if (rate === null) context.fillRect(from, height - bottom + 1, Math.max(1, until - from), 3);
    else context.fillRect(from, y(rate), Math.max(1, until - from), height - bottom - y(rate));
  });
  if (run.period_s !== null) drawPeriod(context, run, x, y, peak, end);
  drawAxes(context, run, { left, right, top, bottom, width, height, end, peak, x, y });
}

// Draws the period as a sine wave, with the phase aligned with the maximum rate (PEARC'18, section 5).
function drawPeriod(context, run, x, y, peak, end) {
  const highest = run.bytes_per_s.reduce((best, rate, index) => ((rate ?? 0) > (run.bytes_per_s[best] ?? 0) ? index : best), 0);
  const center = run.start_s + run.step_s * (highest + 0.5), points = [], count = Math.min(4000, Math.max(400, 24 * end / run.period_s));
  for (let index = 0; index <= count; index++) {
    const s = end * index / count;
    points.push([x(s), y(peak * (1 + Math.cos(2 * Math.PI * (s - center) / run.period_s)) / 2)]);
  }
  context.strokeStyle = color("vermilion");
  context.lineWidth = 1.5;
  line(context, points);
  context.lineWidth = 1;
}

function drawAxes(context, run, { left, top, bottom, width, right, height, end, peak, x, y }) {
  context.strokeStyle = color("soft");
  context.fillStyle = color("soft");
  line(context, [[left, top], [left, height - bottom], [width - right, height - bottom]]);
  const [longest, second, timeName] = withUnit(end, TIMES), [highest, size, rateName] = withUnit(peak, RATES);
  context.textAlign = "center";
  ticks(longest).forEach((tick) => context.fillText(String(tick), x(tick * second), height - bottom + 18));
  context.fillText(`time since the start [${timeName}]`, left + (width - left - right) / 2, height - 6);
  context.textAlign = "right";
  ticks(highest).forEach((tick) => context.fillText(String(tick), left - 6, y(tick * size) + 4));
  context.save();
  context.translate(14, top + (height - top - bottom) / 2);
  context.rotate(-Math.PI / 2);
  context.textAlign = "center";
  context.fillText(`[${rateName}]`, 0, 0);
  context.restore();
}

// Returns multiples of 1, 2 or 5 from 0 to the limit, about five of them.
function ticks(limit) {
  const rough = limit / 5, power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough), values = [];
  for (let index = 0; index * step <= limit; index++) values.push(Number((index * step).toPrecision(6)));
  return values;
}

function line(context, points) {
  context.beginPath();
  points.forEach(([x, y], index) => (index ? context.lineTo(x, y) : context.moveTo(x, y)));
  context.stroke();
}

// ---- the form

function show() {
  const run = content.runs[place], review = reviewOf(run), count = content.runs.filter(isComplete).length;
  byId("progress").textContent = `run ${place + 1} of ${content.runs.length}, ${count} reviewed`;
  byId("title").textContent = run.title;
  const nodes = run.node_count === null ? "" : `, ${run.node_count} ${run.node_count === 1 ? "node" : "nodes"}`;
  const period = run.period_s === null ? "no period" : `period ${timeText(run.period_s)} (red line)`;
  byId("facts").textContent = `${timeText(run.duration_s)}${nodes} · class ${run.label}${run.is_inferred ? ", inferred from the application's signature" : ""} · ${period}`;
  byId("note").textContent = run.is_exact ? "Bytes counted for this run." : "All traffic of the file system during the run: other jobs contribute to it.";
  byId("accept").querySelector("span").textContent = `Accept ${run.label}`;
  byId("series").setAttribute("aria-label", `Rate of ${run.title} over time`);
  document.querySelectorAll("[data-label]").forEach((button) => button.setAttribute("aria-pressed", button.dataset.label === review.label_verdict));
  document.querySelectorAll("[data-period]").forEach((button) => button.setAttribute("aria-pressed", button.dataset.period === review.period_verdict));
  byId("periods").hidden = run.period_s === null;
  byId("previous").disabled = place === 0;
  byId("next").disabled = place + 1 === content.runs.length;
  byId("save").disabled = !count;
  draw(run);
}

// Quotes a cell of a CSV file (RFC 4180).
function cell(value) {
  const text = value === null || value === undefined ? "" : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function csv() {
  const rows = content.runs.filter(isComplete).map((run) => ({
    ...run.key, reviewer: content.reviewer, proposed_label: run.label, proposed_period_s: run.period_s, ...reviewOf(run),
  }));
  return [content.columns, ...rows.map((row) => content.columns.map((name) => row[name]))].map((cells) => cells.map(cell).join(",") + "\r\n").join("");
}

function save() {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([csv()], { type: "text/csv" }));
  link.download = "reviews.csv";
  link.click();
  URL.revokeObjectURL(link.href);
}

byId("accept").addEventListener("click", () => decide({ label_verdict: content.runs[place].label }));
document.querySelectorAll("[data-label]").forEach((button) => button.addEventListener("click", () => decide({ label_verdict: button.dataset.label })));
document.querySelectorAll("[data-period]").forEach((button) => button.addEventListener("click", () => decide({ period_verdict: button.dataset.period })));
byId("previous").addEventListener("click", () => move(-1));
byId("next").addEventListener("click", () => move(1));
byId("save").addEventListener("click", save);
addEventListener("resize", () => draw(content.runs[place]));
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const labels = [...document.querySelectorAll("[data-label]")];
  const period = [...document.querySelectorAll("[data-period]")].find((button) => button.dataset.period[0] === event.key);
  if (event.key === "ArrowRight") move(1);
  else if (event.key === "ArrowLeft") move(-1);
  else if (event.key === "Enter" && event.target === document.body) byId("accept").click();
  else if (labels[Number(event.key) - 1]) labels[Number(event.key) - 1].click();
  else if (period && !byId("periods").hidden) period.click();
});
show();
})();

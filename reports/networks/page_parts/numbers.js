// Formats numbers for readers.
const SIZE_UNITS = [[1, "B"], [1e3, "kB"], [1e6, "MB"], [1e9, "GB"], [1e12, "TB"], [1e15, "PB"]];
const TIME_UNITS = [[1e-9, "ns"], [1e-6, "µs"], [1e-3, "ms"], [1, "s"], [600, "min", 60], [18000, "h", 3600]];
const METRIC_NAMES = { size: "size", bandwidth: "bandwidth", service_time: "service time", latency: "latency", write_time: "write time" };

function digits(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-3) return value.toExponential(2);
  return value.toLocaleString("en-US", { maximumSignificantDigits: Math.max(3, Math.floor(Math.log10(size)) + 1) });
}

function inUnits(value, units) {
  let chosen = units[0];
  for (const unit of units) if (Math.abs(value) >= unit[0] * 0.9995) chosen = unit;
  return `${digits(value / (chosen[2] || chosen[0]))} ${chosen[1]}`;
}

const sizeText = (bytes) => (bytes === 0 ? "0 B" : inUnits(bytes, SIZE_UNITS));
const timeText = (seconds) => (seconds === 0 ? "0 s" : inUnits(seconds, TIME_UNITS));
const countText = (count) => Math.round(count).toLocaleString("en-US");

function valueText(metric, value) {
  if (value === null || Number.isNaN(value)) return "not known";
  if (metric === "time") return timeText(value);
  return metric === "size" ? sizeText(value) : `${sizeText(value)}/s`;
}

const plural = (count, noun) => `${countText(count)} ${noun}${Math.round(count) === 1 ? "" : "s"}`;

function metricName(about, metric, hop) {
  const name = about.metrics[metric].name;
  return METRIC_NAMES[name === "time" ? about.hops[hop].timeKind : name];
}

// The display name of a metric for all hops together.
function metricTitle(about, metric) {
  const names = [...new Set(about.hops.map((_, hop) => metricName(about, metric, hop)))];
  return names.join(" / ");
}

// Ticks of a log axis from `low` to `high`, both above zero: powers of ten.
function decades(low, high, most) {
  const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
  const step = Math.max(1, Math.ceil((last - first + 1) / most));
  const found = [];
  for (let power = first; power <= last; power += step) found.push(10 ** power);
  return found;
}

// Ticks of a linear axis, at round numbers.
function linearTicks(low, high, most) {
  const raw = (high - low) / Math.max(1, most) || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= raw);
  const found = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high + step * 1e-6; tick += step) found.push(tick);
  return found;
}

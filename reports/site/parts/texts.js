// Formats numbers for readers, with the units of reports/texts.py.
const SIZES = [[1, "B"], [1e3, "kB"], [1e6, "MB"], [1e9, "GB"], [1e12, "TB"], [1e15, "PB"]];
const TIMES = [[1e-6, "µs"], [1e-3, "ms"], [1, "s"], [600, "min", 60], [18000, "h", 3600], [432000, "d", 86400]];
const COUNTS = [[1, "op"], [1e3, "kop"], [1e6, "Mop"], [1e9, "Gop"], [1e12, "Top"], [1e15, "Pop"]];
const UNKNOWN = "–";

const isKnown = (value) => value !== null && value !== undefined && !Number.isNaN(value);

function digits(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e7 || size < 1e-3) return value.toExponential(1);
  return value.toLocaleString("en-US", { maximumSignificantDigits: Math.max(3, Math.floor(Math.log10(size)) + 1) });
}

function unitFor(value, units) {
  let chosen = units[0];
  for (const unit of units) if (Math.abs(value) >= unit[0] * 0.9995) chosen = unit;
  return { size: chosen[2] || chosen[0], name: chosen[1] };
}

function inUnits(value, units) {
  if (!isKnown(value)) return UNKNOWN;
  if (value === 0) return `0 ${units === TIMES ? "s" : units[0][1]}`;
  const unit = unitFor(value, units);
  return `${digits(value / unit.size)} ${unit.name}`;
}

// Formats a range of durations in the unit of the longer one.
function durationRangeText(low, high) {
  if (!isKnown(low) || !isKnown(high)) return UNKNOWN;
  const unit = unitFor(high, TIMES);
  return `${digits(low / unit.size)} to ${digits(high / unit.size)} ${unit.name}`;
}

const volumeText = (bytes) => inUnits(bytes, SIZES);
const operationsText = (count) => inUnits(count, COUNTS);
const inUnitsPerSecond = (rate, units) => (isKnown(rate) ? `${inUnits(rate, units)}/s` : UNKNOWN);
const rateText = (rate) => inUnitsPerSecond(rate, SIZES);
const operationRateText = (rate) => inUnitsPerSecond(rate, COUNTS);
const durationText = (seconds) => inUnits(seconds, TIMES);
const countText = (count) => (isKnown(count) ? Math.round(count).toLocaleString("en-US") : UNKNOWN);
const numberText = (value) => (isKnown(value) ? digits(value) : UNKNOWN);
const trustText = (value) => (isKnown(value) ? value.toFixed(2) : UNKNOWN);
const ratioText = (value) => (isKnown(value) ? `${(100 * value).toFixed(value > 0.1 ? 0 : 1)} %` : UNKNOWN);
const instantText = (seconds) =>
  isKnown(seconds) ? new Date(seconds * 1000).toISOString().slice(0, 16).replace("T", " ") : UNKNOWN;

// Formats a name from a log for display: without control characters, and shortened.
function nameText(name, most = 300) {
  if (!isKnown(name)) return UNKNOWN;
  const text = String(name).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, "\ufffd");
  return text.length <= most ? text : `${text.slice(0, most / 2)}…${text.slice(-most / 2)}`;
}

// Quotes a word for a shell, if necessary.
const shellWord = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`);

// The shell command that runs a query, with its parameters replaced by SQL literals.
function commandLine(query, values = {}) {
  const filled = query.replace(/\$([a-z_]+)/g, (_, name) => `'${String(values[name]).replaceAll("'", "''")}'`);
  const quoted = /["$`\\!\n\r]/.test(filled) ? `'${filled.replaceAll("'", `'"'"'`)}'` : `"${filled}"`;
  return nameText(`iosig sql ${quoted}`, 4000);
}

// The name of the data file about a subject, as in `file_hash` of reports/site/packing.py.
function fileHash(name) {
  let found = 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(name)) found = BigInt.asUintN(64, (found ^ BigInt(byte)) * 0x100000001b3n);
  return found.toString(16).padStart(16, "0");
}

const hashOf = (parts) => parts.map(encodeURIComponent).join("/");
const applicationHash = (id, filesystem, direction) =>
  hashOf([...id.split("/"), ...(filesystem === undefined ? [] : [filesystem, direction])]);

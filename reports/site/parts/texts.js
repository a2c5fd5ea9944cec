// Numbers as people read them; the units are those of reports/texts.py.
const SIZES = [[1, "B"], [1e3, "kB"], [1e6, "MB"], [1e9, "GB"], [1e12, "TB"], [1e15, "PB"]];
const TIMES = [[1e-6, "µs"], [1e-3, "ms"], [1, "s"], [600, "min", 60], [18000, "h", 3600], [432000, "d", 86400]];
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
  if (value === 0) return `0 ${units === SIZES ? "B" : "s"}`;
  const unit = unitFor(value, units);
  return `${digits(value / unit.size)} ${unit.name}`;
}

// A range of times, both in the unit that fits the longer one.
function durationRangeText(low, high) {
  if (!isKnown(low) || !isKnown(high)) return UNKNOWN;
  const unit = unitFor(high, TIMES);
  return `${digits(low / unit.size)} to ${digits(high / unit.size)} ${unit.name}`;
}

const volumeText = (bytes) => inUnits(bytes, SIZES);
const rateText = (rate) => (isKnown(rate) ? `${inUnits(rate, SIZES)}/s` : UNKNOWN);
const durationText = (seconds) => inUnits(seconds, TIMES);
const countText = (count) => (isKnown(count) ? Math.round(count).toLocaleString("en-US") : UNKNOWN);
const numberText = (value) => (isKnown(value) ? digits(value) : UNKNOWN);
const trustText = (value) => (isKnown(value) ? value.toFixed(2) : UNKNOWN);
const ratioText = (value) => (isKnown(value) ? `${(100 * value).toFixed(value > 0.1 ? 0 : 1)} %` : UNKNOWN);
const instantText = (seconds) =>
  isKnown(seconds) ? new Date(seconds * 1000).toISOString().slice(0, 16).replace("T", " ") : UNKNOWN;

// A name from a log as it can be shown: nothing that steers, not too long.
function nameText(name, most = 300) {
  if (!isKnown(name)) return UNKNOWN;
  const text = String(name).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, "\ufffd");
  return text.length <= most ? text : `${text.slice(0, most / 2)}…${text.slice(-most / 2)}`;
}

// A word as a shell takes it.
const shellWord = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`);

// A query with its names filled in as SQL writes texts, in a line that a shell takes as it is.
function commandLine(query, values = {}) {
  const filled = query.replace(/\$([a-z_]+)/g, (_, name) => `'${String(values[name]).replaceAll("'", "''")}'`);
  const quoted = /["$`\\!\n\r]/.test(filled) ? `'${filled.replaceAll("'", `'"'"'`)}'` : `"${filled}"`;
  return nameText(`iosig sql ${quoted}`, 4000);
}

// The name of the file of data that is about something: as reports/site/packing.py reckons it.
function fileHash(name) {
  let found = 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(name)) found = BigInt.asUintN(64, (found ^ BigInt(byte)) * 0x100000001b3n);
  return found.toString(16).padStart(16, "0");
}

const hashOf = (parts) => parts.map(encodeURIComponent).join("/");
const applicationHash = (id, filesystem, direction) =>
  hashOf([...id.split("/"), ...(filesystem === undefined ? [] : [filesystem, direction])]);

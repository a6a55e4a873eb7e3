// The page: asks for status.json every second and shows it. Texts of clients are only ever set as text.
"use strict";

const POINTS = 120;
const kept = {ops: [], chains: [], memory: []};
let before = null; // the last answer, and its counters by session

const element = (id) => document.getElementById(id);

function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let u = 0;
  for (; n >= 1024 && u < units.length - 1; u++) n /= 1024;
  return `${n < 10 && u ? n.toFixed(1) : Math.round(n)} ${units[u]}`;
}

const number = (n) => n >= 100 ? Math.round(n).toLocaleString("en") : n.toFixed(n > 0 && n < 10 ? 1 : 0);
const whole = (n) => n.toLocaleString("en");
const seconds = (s) => s < 120 ? `${s.toFixed(1)} s` : s < 7200 ? `${Math.round(s / 60)} min` : `${Math.round(s / 3600)} h`;

function line(id, list, value) {
  list.push(value);
  if (list.length > POINTS) list.shift();
  const most = Math.max(...list, 1e-9);
  const at = list.map((v, i) => `${i + POINTS - list.length},${29 - 28 * v / most}`).join(" ");
  let drawn = element(id).firstElementChild;
  if (!drawn) {
    drawn = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
    element(id).append(drawn);
  }
  drawn.setAttribute("points", at);
}

// A row of texts; what is [value, most] becomes a bar.
function row(cells, numeric) {
  const tr = document.createElement("tr");
  cells.forEach((cell, i) => {
    const td = tr.insertCell();
    if (Array.isArray(cell)) {
      const bar = document.createElement("meter");
      bar.max = cell[1] || 1;
      bar.value = cell[0];
      td.append(bar);
    } else {
      td.textContent = cell;
      if (numeric.includes(i)) td.className = "n";
    }
  });
  return tr;
}

function workerRows(workers) {
  return workers.flatMap((w) => {
    const first = [w.domain, w.pid || "", w.why ? `${w.state}: ${w.why}` : w.state];
    if (!w.devices || !w.devices.length) return [row([...first, "", "", ""], [])];
    return w.devices.map((d) => row([...first, `${w.backend} ${d.device}: ${d.name}`,
      `${bytes(d.slab_bytes)} of ${bytes(d.limit_bytes)}`, [d.slab_bytes, d.limit_bytes]], []));
  });
}

// What has been added to a counter of a session since the last answer, a second.
function rate(s, name, passed) {
  const old = before && before.sessions.get(s.session);
  return passed > 0 ? Math.max(0, s.counters[name] - (old ? old[name] : 0)) / passed : 0;
}

// What a session does: a long operation, or why it does nothing.
function doing(s, passed) {
  if (s.executing) return `${s.executing} for ${seconds(s.executing_seconds)}`;
  if (s.state === "waiting") return "its client is away";
  if (s.counters.queued_bytes > 0) return "waits for its turn";
  return rate(s, "ops_done", passed) > 0 ? "computes" : "nothing";
}

// The same colour for a principal in every view.
function colour(who) {
  let hash = 5381;
  for (const c of new TextEncoder().encode(who)) hash = (hash * 33 + c) % 4294967296;
  return `hsl(${hash % 360} 60% 40%)`;
}

function coloured(tr, who) {
  tr.cells[1].style.color = colour(who);
  return tr;
}

// How busy the devices were since the last answer, and with whom most. Operations of several sessions may share a device,
// so that the sum of their times may exceed its time.
function busiest(sessions, devices, passed) {
  const share = (s) => rate(s, "device_us", passed) / 1e6;
  const most = sessions.reduce((a, s) => (!a || share(s) > share(a)) ? s : a, null);
  const whole = Math.min(devices, sessions.reduce((n, s) => n + share(s), 0));
  return most && share(most) > 0 ? `${Math.round(100 * whole)} %, most with ${most.principal} (${most.session})`
    : `${Math.round(100 * whole)} %`;
}

function sessionRows(sessions, passed) {
  const most = Math.max(...sessions.map((s) => s.counters.buffer_bytes), 1);
  return [...sessions].sort((a, b) => b.counters.buffer_bytes - a.counters.buffer_bytes).slice(0, 200).map((s) => coloured(row([
    s.state === "active" ? s.session : `${s.session} (${s.state})`, s.principal, s.client, whole(s.counters.buffers), bytes(s.counters.buffer_bytes),
    [s.counters.buffer_bytes, most], number(rate(s, "ops_done", passed)), whole(s.counters.fused_chains),
    seconds(s.counters.device_us / 1e6), doing(s, passed), seconds(s.idle_seconds)], [3, 4, 6, 7, 8, 10]), s.principal));
}

function show(now) {
  const a = now.arrayd, sum = (name) => now.sessions.reduce((n, s) => n + s.counters[name], 0);
  const passed = before ? a.uptime_seconds - before.uptime : 0;
  const all = (name) => now.sessions.reduce((n, s) => n + rate(s, name, passed), 0);
  const memory = sum("buffer_bytes");
  element("front").textContent = `version ${a.version}, process ${a.pid}, up ${seconds(a.uptime_seconds)}`;
  element("front").className = "";
  element("ops").textContent = number(all("ops_done"));
  element("chains").textContent = number(all("fused_chains"));
  element("memory").textContent = bytes(memory);
  element("busy").textContent = busiest(now.sessions, Math.max(1, ...now.workers.map((w) => w.devices.length)), passed);
  element("count").textContent = now.sessions.length;
  line("ops-line", kept.ops, all("ops_done"));
  line("chains-line", kept.chains, all("fused_chains"));
  line("memory-line", kept.memory, memory);
  element("workers").replaceChildren(...workerRows(now.workers));
  element("sessions").replaceChildren(...sessionRows(now.sessions, passed));
  element("none").hidden = now.sessions.length > 0;
  before = {uptime: a.uptime_seconds, sessions: new Map(now.sessions.map((s) => [s.session, s.counters]))};
}

async function look() {
  try {
    const answer = await fetch("status.json", {cache: "no-store"});
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    show(await answer.json());
  } catch (error) {
    element("front").textContent = `the server does not answer: ${error.message}`;
    element("front").className = "lost";
    before = null;
  }
  setTimeout(look, 1000);
}

look();

// Shows what `/openapi.json` says of a namespace, and calls its tools. Texts of tools are put in as text, never as HTML.
"use strict";

const find = (id) => document.getElementById(id);
const notice = (text) => { find("notice").textContent = text; };

function element(name, text, kind) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

function headers() {
  const all = { Authorization: "Bearer " + find("token").value.trim() };
  const namespace = find("namespace").value.trim();
  if (namespace) all["X-Namespace"] = namespace;
  return all;
}

async function ask(path, more = {}) {
  const answer = await fetch(path, { ...more, headers: { ...headers(), ...more.headers }, cache: "no-store" });
  const text = await answer.text();
  let value;
  try { value = JSON.parse(text); } catch { value = text; }
  return { status: answer.status, value };
}

// A schema in its place: what it refers to, within the document.
function resolve(whole, schema) {
  for (let steps = 0; schema && typeof schema.$ref === "string" && steps < 16; steps++) {
    if (!schema.$ref.startsWith("#/")) return schema;
    const parts = schema.$ref.slice(2).split("/").map((part) => part.replace(/~1/g, "/").replace(/~0/g, "~"));
    schema = parts.reduce((place, part) => (place && Object.hasOwn(place, part) ? place[part] : undefined), whole);
  }
  return schema;
}

// Something to begin with: what is required, and defaults.
function sample(whole, schema, depth = 0) {
  schema = resolve(whole, schema);
  if (!schema || typeof schema !== "object" || depth > 8) return null;
  for (const known of ["default", "const"]) if (known in schema) return schema[known];
  if (Array.isArray(schema.examples) && schema.examples.length) return schema.examples[0];
  if (Array.isArray(schema.enum) && schema.enum.length) return schema.enum[0];
  for (const choice of ["anyOf", "oneOf", "allOf"]) {
    if (Array.isArray(schema[choice]) && schema[choice].length) return sample(whole, schema[choice][0], depth + 1);
  }
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  if (type === "object" || schema.properties) {
    const required = new Set(schema.required || []);
    const entries = Object.entries(schema.properties || {})
      .filter(([name, part]) => required.has(name) || (part && "default" in Object(part)))
      .map(([name, part]) => [name, sample(whole, part, depth + 1)]);
    return Object.fromEntries(entries);
  }
  return { string: "", integer: 0, number: 0, boolean: false, array: [], null: null }[type] ?? null;
}

const quote = (text) => "'" + text.replaceAll("'", "'\\''") + "'";

function curl(path, body) {
  const namespace = find("namespace").value.trim();
  const named = namespace ? ` -H ${quote("X-Namespace: " + namespace)}` : "";
  return `curl -H "Authorization: Bearer $TOKEN"${named} --json ${quote(body)} ${quote(location.origin + path)}`;
}

function details(title, value) {
  const box = element("details");
  box.append(element("summary", title), element("pre", JSON.stringify(value, null, 2)));
  return box;
}

function card(whole, path, operation) {
  const box = element("article");
  box.id = operation.operationId;
  box.append(element("h2", "POST " + path));
  const title = operation.summary && "/tools/" + operation.summary !== path ? operation.summary + "\n" : "";
  if (title || operation.description) box.append(element("p", title + (operation.description || "")));
  const input = operation.requestBody?.content?.["application/json"]?.schema;
  const output = operation.responses?.["200"]?.content?.["application/json"]?.schema;
  const form = element("form");
  const body = element("textarea");
  body.value = JSON.stringify(sample(whole, input) ?? {}, null, 2);
  body.rows = Math.min(12, body.value.split("\n").length + 1);
  body.spellcheck = false;
  body.setAttribute("aria-label", "Arguments of " + path);
  const line = element("pre", curl(path, body.value));
  const outcome = element("pre");
  outcome.hidden = true;
  body.addEventListener("input", () => { line.textContent = curl(path, body.value); });
  form.append(body, element("button", "Call"));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    outcome.hidden = false;
    outcome.className = "";
    outcome.textContent = "…";
    try {
      const began = performance.now();
      const answer = await ask(path, { method: "POST", body: body.value, headers: { "Content-Type": "application/json" } });
      const time = Math.round(performance.now() - began);
      const failed = answer.status !== 200 || answer.value?.isError;
      outcome.className = failed ? "failed" : "done";
      outcome.textContent = `${answer.status}, ${time} ms\n` + JSON.stringify(answer.value, null, 2);
    } catch (error) {
      outcome.className = "failed";
      outcome.textContent = String(error);
    }
  });
  box.append(form, outcome, details("Input schema", resolve(whole, input) ?? {}));
  const result = output?.allOf?.[1]?.properties?.structuredContent;
  if (result) box.append(details("Output schema", resolve(whole, result) ?? {}));
  const lines = element("details");
  lines.append(element("summary", "curl"), line);
  box.append(lines);
  return box;
}

async function show(event) {
  event.preventDefault();
  notice("…");
  find("tools").replaceChildren();
  try {
    const names = await ask("/namespaces");
    if (names.status === 200 && Array.isArray(names.value.namespaces)) {
      find("namespaces").replaceChildren(...names.value.namespaces.map((name) => {
        const option = element("option");
        option.value = name;
        return option;
      }));
    }
    const answer = await ask("/openapi.json");
    if (answer.status !== 200) {
      notice(answer.value?.error?.message ?? `the answer is ${answer.status}`);
      return;
    }
    const paths = Object.entries(answer.value.paths ?? {}).filter(([, item]) => item.post);
    find("tools").replaceChildren(...paths.map(([path, item]) => card(answer.value, path, item.post)));
    notice(paths.length === 1 ? "1 tool" : `${paths.length} tools`);
  } catch (error) {
    notice(String(error));
  }
}

find("namespace").value = new URLSearchParams(location.search).get("namespace") ?? "";
find("key").addEventListener("submit", show);

import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseSync } from "rolldown/utils";

const root = fileURLToPath(new URL("../..", import.meta.url));
export const reportFile = join(root, "docs/api/brigbox.api.md");

/** The report of the last build. */
export function apiReport() {
  const { name, exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const entries = Object.entries(exports).map(([path, { types }]) => ({
    path: path.replace(".", name),
    exported: exportsOf(join(root, types)),
  }));
  const all = entries.flatMap(({ exported }) => exported);
  const publicKeys = new Set(all.map(keyOf));
  const reached = reachedFrom(all);
  const sections = entries.map(({ path, exported }) => {
    const keys = new Set(exported.map(keyOf));
    return section(
      path,
      [...reached.values()].filter(({ key }) => keys.has(key)),
    );
  });
  const others = [...reached.values()].filter(({ key }) => !publicKeys.has(key));
  return `${[heading, ...sections, section("Not exported, but mentioned by what is", others)].join("\n\n")}\n`;
}

const heading =
  "# The public API of brigbox\n\n`npm run api` writes this file from the compiled declarations. A change of it is a change for users.";

function section(title, declarations) {
  const texts = declarations.map(({ text }) => text).toSorted();
  return `## ${title}\n\n\`\`\`ts\n${texts.join("\n\n")}\n\`\`\``;
}

/** The names that an entry exports, each with the file that declares it. */
function exportsOf(file) {
  return parse(file).body.flatMap((node) => {
    if (node.type !== "ExportNamedDeclaration" || node.source === null)
      throw new Error(`${file} does something else than export from other files`);
    return node.specifiers.map(({ local }) =>
      declared({ file: fileAt(file, node.source), name: local.name }),
    );
  });
}

/** Where a name is declared that a file may only hand on, as the doors of the parts of src do. */
function declared({ file, name }) {
  const from = moduleOf(file).handedOn.get(name);
  return from === undefined ? { file, name } : declared(from);
}

/** The declarations of these names, and of the names of this package that they mention. */
function reachedFrom(names) {
  const exported = new Set(names.map(keyOf));
  const reached = new Map();
  const waiting = [...names];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const key = keyOf(next);
    if (reached.has(key)) continue;
    const module = moduleOf(next.file);
    const nodes = module.declarations.get(next.name);
    if (nodes === undefined) throw new Error(`${next.file} does not declare ${next.name}`);
    const parts = nodes.map((node) => (exported.has(key) ? node : visiblePart(node)));
    reached.set(key, { key, text: parts.map((node) => textOf(node, module)).join("\n") });
    waiting.push(...parts.flatMap((node) => mentionsIn(node, module)).map(declared));
  }
  return reached;
}

const modules = new Map();

function moduleOf(file) {
  if (!modules.has(file)) modules.set(file, readModule(file));
  return modules.get(file);
}

/** The declarations of a file by their names, and what the names mean that it imports or hands on. */
function readModule(file) {
  const { body, comments, source } = parse(file);
  const declarations = new Map();
  const imports = new Map();
  const handedOn = new Map();
  for (const node of body) {
    if (node.type === "ExportNamedDeclaration" && node.source !== null)
      for (const { local, exported } of node.specifiers)
        handedOn.set(exported.name, { file: fileAt(file, node.source), name: local.name });
    if (node.type === "ImportDeclaration" && node.source.value.startsWith("."))
      for (const { local, imported } of node.specifiers)
        imports.set(local.name, { file: fileAt(file, node.source), name: imported?.name ?? null });
    const declaration = node.type === "ExportNamedDeclaration" ? node.declaration : node;
    const declared = declaration?.declarations?.map(({ id }) => id.name) ?? [declaration?.id?.name];
    for (const name of declared.filter((one) => one !== undefined))
      declarations.set(name, [...(declarations.get(name) ?? []), declaration]);
  }
  return { file, source, comments, declarations, imports, handedOn };
}

/** A function that is not exported is mentioned for what it returns: that is how the types of the tools are computed. */
function visiblePart(node) {
  return /Function/.test(node.type) ? { ...node, params: [], hidesParameters: true } : node;
}

function mentionsIn(node, module) {
  if (Array.isArray(node)) return node.flatMap((one) => mentionsIn(one, module));
  if (typeof node !== "object" || node === null) return [];
  const mentioned = mentionedBy(node).flatMap((reference) => meaningOf(reference, module) ?? []);
  return [...mentioned, ...Object.values(node).flatMap((child) => mentionsIn(child, module))];
}

function mentionedBy(node) {
  if (node.type === "TSTypeReference") return [node.typeName];
  if (node.type === "TSTypeQuery") return [node.exprName];
  if (node.type === "TSImportType") return [node];
  if (node.type === "TSInterfaceHeritage" || node.type === "TSClassImplements") return [node.expression];
  if (node.type === "ClassDeclaration" && node.superClass !== null) return [node.superClass];
  return [];
}

/** The declaration that a reference stands for; undefined for those of Node and of other packages, and for type parameters. */
function meaningOf(node, { file, declarations, imports }) {
  if (node.type === "TSImportType")
    return node.source.value.startsWith(".")
      ? { file: fileAt(file, node.source), name: firstName(node.qualifier) }
      : undefined;
  if (node.type === "TSQualifiedName") {
    const from = imports.get(firstName(node));
    if (from?.name === null) return { file: from.file, name: secondName(node) };
    return from ?? undefined;
  }
  if (declarations.has(node.name)) return { file, name: node.name };
  return imports.get(node.name);
}

const firstName = (node) => (node.type === "TSQualifiedName" ? firstName(node.left) : node.name);
const secondName = (node) => (node.left.type === "TSQualifiedName" ? secondName(node.left) : node.right.name);

/** A declaration without its comments, and without the places of files, which are nobody's business. */
function textOf(node, module) {
  if (node.hidesParameters) return `function ${node.id.name}(…)${textBetween(node.returnType, module)};`;
  return textBetween(node, module);
}

function textBetween({ start, end }, { source, comments }) {
  const inside = comments.filter((comment) => comment.start >= start && comment.end <= end);
  const code = inside.reduceRight(
    (text, comment) => text.slice(0, comment.start - start) + text.slice(comment.end - start),
    source.slice(start, end),
  );
  return code
    .replace(/^declare /, "")
    .replace(/import\("\.[^"]*"\)\./g, "")
    .split("\n")
    .filter((line) => line.trim() !== "")
    .join("\n");
}

function parse(file) {
  const source = readFileSync(file, "utf8");
  const { program, comments, errors } = parseSync(file, source);
  if (errors.length > 0) throw new Error(`${file}: ${errors[0].message}`);
  return { body: program.body, comments, source };
}

const fileAt = (from, { value }) => resolve(dirname(from), value.replace(/\.js$/, ".d.ts"));
const keyOf = ({ file, name }) => `${file}:${name}`;

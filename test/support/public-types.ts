import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { parseSync } from "rolldown/utils";

interface SyntaxNode {
  type: string;
  [field: string]: unknown;
}

/** An exported name, and the file that declares it. */
export interface Export {
  name: string;
  file: string;
}

/** A type that the signature of an exported name mentions, and that a user of the package cannot name. */
export interface Forgotten {
  name: string;
  mentionedBy: string;
}

/** What a file that only exports from others exports. */
export function exportsOf(file: string): Export[] {
  return bodyOf(file)
    .filter((node) => node.type === "ExportNamedDeclaration" && node.source !== null)
    .flatMap((node) =>
      nodesIn(node.specifiers).map((specifier) => ({
        name: nameOf(specifier.exported),
        file: sourceFile(file, nameOf(node.source)),
      })),
    );
}

/**
 * The types of this project that the declarations of `exported` mention and that are not among them. What stands in a function's body
 * or in a private member is no part of a signature; neither is `typeof` a value.
 */
export function forgottenTypes(exported: readonly Export[]): Forgotten[] {
  const known = new Set(exported.map(({ name, file }) => `${file}:${name}`));
  return exported.flatMap(({ name, file }) => {
    const types = typesOf(file);
    const declaration = types.get(name)?.declaration ?? valueNamed(file, name);
    if (declaration === undefined) throw new Error(`${file} declares no ${name}`);
    const own = new Set(
      nodesIn((declaration.typeParameters as SyntaxNode | null)?.params).map((one) => nameOf(one.name)),
    );
    return [...new Set(mentions(declaration))]
      .filter((mentioned) => !own.has(mentioned) && types.has(mentioned))
      .filter((mentioned) => !known.has(`${types.get(mentioned)?.file}:${mentioned}`))
      .map((mentioned) => ({ name: mentioned, mentionedBy: name }));
  });
}

interface KnownType {
  file: string;
  declaration?: SyntaxNode;
}

/** The types that a file declares, or takes from another file of the project. */
function typesOf(file: string): Map<string, KnownType> {
  const types = new Map<string, KnownType>();
  for (const node of bodyOf(file)) {
    if (node.type === "ImportDeclaration") {
      const from = nameOf(node.source);
      if (!from.startsWith(".")) continue;
      for (const specifier of nodesIn(node.specifiers))
        types.set(nameOf(specifier.local), { file: sourceFile(file, from) });
    }
    const declaration = declared(node);
    if (declaration !== null && typeDeclarations.has(declaration.type))
      types.set(nameOf(declaration.id), { file, declaration });
  }
  return types;
}

const typeDeclarations = new Set(["TSInterfaceDeclaration", "TSTypeAliasDeclaration", "ClassDeclaration"]);

function valueNamed(file: string, name: string): SyntaxNode | undefined {
  return bodyOf(file)
    .flatMap((node) => declared(node) ?? [])
    .find((declaration) =>
      declaration.type === "VariableDeclaration"
        ? nodesIn(declaration.declarations).some((one) => nameOf(one.id) === name)
        : declaration.id != null && nameOf(declaration.id) === name,
    );
}

function declared(node: SyntaxNode): SyntaxNode | null {
  if (node.type === "ExportNamedDeclaration") return (node.declaration as SyntaxNode | null) ?? null;
  return node;
}

/** The names of types within a declaration. */
function mentions(node: unknown): string[] {
  if (Array.isArray(node)) return node.flatMap(mentions);
  if (!isNode(node)) return [];
  if (isHidden(node)) return [];
  const own =
    node.type === "TSTypeReference"
      ? [node.typeName]
      : node.type === "TSInterfaceHeritage"
        ? [node.expression]
        : [];
  return [
    ...own.filter((one) => (one as SyntaxNode).type === "Identifier").map(nameOf),
    ...Object.entries(node)
      .filter(([field]) => field !== "body" || !isFunction(node))
      .flatMap(([, child]) => mentions(child)),
  ];
}

function isHidden(node: SyntaxNode): boolean {
  if (node.type === "TSTypeQuery" || node.type === "StaticBlock") return true;
  if (node.accessibility === "private") return true;
  return (node.key as SyntaxNode | undefined)?.type === "PrivateIdentifier";
}

function isFunction({ type }: SyntaxNode): boolean {
  return /Function/.test(type);
}

function bodyOf(file: string): SyntaxNode[] {
  const { program, errors } = parseSync(file, readFileSync(file, "utf8"));
  if (errors[0] !== undefined) throw new Error(`${file}: ${errors[0].message}`);
  return nodesIn(program.body);
}

function sourceFile(from: string, specifier: string): string {
  return resolve(dirname(from), specifier.replace(/\.js$/, ".ts"));
}

function nameOf(node: unknown): string {
  const { name, value } = node as { name?: string; value?: string };
  return name ?? value ?? "";
}

function nodesIn(value: unknown): SyntaxNode[] {
  return Array.isArray(value) ? value.filter(isNode) : [];
}

function isNode(value: unknown): value is SyntaxNode {
  return typeof value === "object" && value !== null && "type" in value;
}

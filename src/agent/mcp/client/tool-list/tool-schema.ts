import type { JsonSchema } from "../../../../tools/index.js";

/**
 * How many keywords and entries are converted for one tool. Those behind a reference count each time that a
 * reference leads to them. Real tools have about a hundredth of this.
 */
const MAX_ENTRIES_IN_ALL = 10_000;
const MAX_LEVELS = 24;
const MAX_TEXT_CHARS = 256 * 1024;
const MAX_DESCRIPTION_CHARS = 4096;
const MAX_ENTRIES = 500;

const types = ["string", "number", "integer", "boolean", "object", "array", "null"];
const ofNumbers = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];

type Source = Readonly<Record<string, unknown>>;

/**
 * How much more of one tool's schema may be converted. With references, a small schema can describe a very
 * large one.
 */
interface Budget {
  entries: number;
  chars: number;
}

interface Place {
  root: Source;
  levels: number;
  /**
   * The references that were followed to get here. They are not followed again, since that would never end.
   */
  followed: readonly string[];
  budget: Budget;
}

/**
 * Converts the schema of a tool's arguments into a form that every model endpoint accepts: the top is an
 * object, there are only types, descriptions, choices, properties and items, and each reference is replaced
 * by what it stands for. A part that is too deep, too large or contains itself is replaced by a schema
 * without details.
 */
export function modelSchema(schema: unknown): JsonSchema {
  const root = isObject(schema) ? schema : {};
  const budget: Budget = { entries: MAX_ENTRIES_IN_ALL, chars: MAX_TEXT_CHARS };
  return asObject(convert(root, { root, levels: MAX_LEVELS, followed: [], budget }));
}

/**
 * Model endpoints refuse `anyOf` at the top, so the properties of all its alternatives become optional
 * properties.
 */
function asObject({
  anyOf = [],
  properties = {},
  required,
  description,
  additionalProperties,
}: JsonSchema): JsonSchema {
  const alternatives = anyOf.flatMap((schema) => Object.entries(schema.properties ?? {}));
  return {
    type: "object",
    ...(description === undefined ? {} : { description }),
    properties: Object.fromEntries([...alternatives, ...Object.entries(properties)]),
    ...(required === undefined ? {} : { required }),
    ...(additionalProperties === undefined ? {} : { additionalProperties }),
  };
}

function convert(schema: unknown, place: Place): JsonSchema {
  if (typeof schema === "boolean") return { type: "string" };
  if (!isObject(schema) || place.levels === 0 || !canAfford(schema, place.budget)) return {};
  if (typeof schema.$ref === "string") return convertReference(schema.$ref, schema, place);
  const { allOf, ...rest } = schema;
  if (Array.isArray(allOf)) return convert(merged(rest, allOf.slice(0, MAX_ENTRIES), place), deeper(place));
  return complete(withoutInference(schema, deeper(place)), schema);
}

/**
 * Keywords beside the reference are added to the schema that it stands for, and win over those of that
 * schema.
 */
function convertReference(reference: string, { $ref: _, ...beside }: Source, place: Place): JsonSchema {
  const description = descriptionOf(beside, place.budget);
  const target = place.followed.includes(reference) ? undefined : resolveReference(place.root, reference);
  if (!isObject(target)) return description;
  const inner = { ...deeper(place), followed: [...place.followed, reference] };
  return { ...convert({ ...target, ...beside }, inner), ...description };
}

/**
 * Merges the parts of an `allOf` into one schema. If several parts have the same keyword or property, the
 * first one wins.
 */
function merged(schema: Source, parts: readonly unknown[], place: Place): Source {
  const known = parts.map((part) => referenced(part, place)).filter(isObject);
  const all = [schema, ...known.filter((part) => canAfford(part, place.budget))];
  const properties = all.flatMap((part) =>
    isObject(part.properties) ? Object.entries(part.properties) : [],
  );
  const required = all.flatMap((part) =>
    Array.isArray(part.required) ? part.required.slice(0, MAX_ENTRIES) : [],
  );
  return {
    ...Object.fromEntries(all.toReversed().flatMap((part) => Object.entries(part))),
    allOf: undefined,
    ...(properties.length > 0 ? { properties: Object.fromEntries(properties.toReversed()) } : {}),
    ...(required.length > 0 ? { required } : {}),
  };
}

function referenced(part: unknown, place: Place): unknown {
  if (!isObject(part) || typeof part.$ref !== "string" || place.followed.includes(part.$ref)) return part;
  const target = resolveReference(place.root, part.$ref);
  // If the target is a reference again, `convert` follows that one.
  return isObject(target) ? target : {};
}

function withoutInference(schema: Source, place: Place): JsonSchema {
  const type = typeOf(schema);
  const choices = choicesOf(schema, place.budget);
  const alternatives = [schema.anyOf, schema.oneOf].find(Array.isArray);
  return {
    ...(type === undefined ? {} : { type }),
    ...descriptionOf(schema, place.budget),
    ...(choices === undefined ? {} : { enum: choices }),
    ...(alternatives === undefined || alternatives.length === 0
      ? {}
      : { anyOf: alternatives.slice(0, MAX_ENTRIES).map((one) => convert(one, place)) }),
    ...propertiesOf(schema, place),
    ...itemsOf(schema, place),
  };
}

function typeOf({ type }: Source): string | string[] | undefined {
  const known = [type].flat().filter((one): one is string => types.includes(one as string));
  const distinct = [...new Set(known)];
  return distinct.length > 1 ? distinct : distinct[0];
}

function choicesOf(schema: Source, budget: Budget): unknown[] | undefined {
  const choices = Object.hasOwn(schema, "const") ? [schema.const] : schema.enum;
  if (!Array.isArray(choices) || choices.length === 0 || choices.length > MAX_ENTRIES) return undefined;
  const scalars = choices.filter(
    (one) => one === null || ["string", "number", "boolean"].includes(typeof one),
  );
  const isAffordable = scalars.length > 0 && spend(budget, JSON.stringify(scalars).length);
  return isAffordable ? scalars : undefined;
}

function descriptionOf({ description }: Source, budget: Budget): { description?: string } {
  if (typeof description !== "string" || description === "") return {};
  const text = description.slice(0, MAX_DESCRIPTION_CHARS);
  return spend(budget, text.length) ? { description: text } : {};
}

function propertiesOf(schema: Source, place: Place): JsonSchema {
  const { additionalProperties } = schema;
  const rest =
    typeof additionalProperties === "boolean"
      ? { additionalProperties }
      : isObject(additionalProperties)
        ? { additionalProperties: convert(additionalProperties, place) }
        : {};
  if (!isObject(schema.properties)) return rest;
  const names = Object.keys(schema.properties)
    .filter((name) => name !== "__proto__" && name.length <= MAX_DESCRIPTION_CHARS)
    .slice(0, MAX_ENTRIES)
    .filter((name) => spend(place.budget, name.length));
  const own = schema.properties;
  const properties = Object.fromEntries(names.map((name) => [name, convert(own[name], place)]));
  const required = Array.isArray(schema.required)
    ? [...new Set(schema.required.slice(0, MAX_ENTRIES))].filter((name): name is string =>
        names.includes(name as string),
      )
    : [];
  return { properties, ...(required.length > 0 ? { required } : {}), ...rest };
}

function itemsOf(schema: Source, place: Place): JsonSchema {
  const tuple = [schema.prefixItems, schema.items].find(Array.isArray);
  if (tuple !== undefined && tuple.length > 1)
    return { items: { anyOf: tuple.slice(0, MAX_ENTRIES).map((one) => convert(one, place)) } };
  const items = tuple === undefined ? schema.items : tuple[0];
  return items === undefined ? {} : { items: convert(items, place) };
}

/** Adds what model endpoints require: a type, the properties of objects and the items of arrays. */
function complete(schema: JsonSchema, source: Source): JsonSchema {
  const type = schema.type ?? (schema.anyOf === undefined ? inferredType(source) : undefined);
  const has = (name: string) => [type].flat().includes(name);
  return {
    ...(type === undefined ? {} : { type }),
    ...schema,
    ...(has("object") && schema.properties === undefined ? { properties: {} } : {}),
    ...(has("array") && schema.items === undefined ? { items: { type: "string" } } : {}),
  };
}

function inferredType(source: Source): string {
  const has = (name: string) => source[name] !== undefined;
  if (["properties", "required", "additionalProperties"].some(has)) return "object";
  if (["items", "prefixItems"].some(has)) return "array";
  if (has("enum") || Object.hasOwn(source, "const")) return typeOfChoices(source);
  return ofNumbers.some(has) && !has("format") ? "number" : "string";
}

function typeOfChoices(source: Source): string {
  const choices = Array.isArray(source.enum) ? source.enum : [source.const];
  const isEvery = (name: string) => choices.every((choice) => typeof choice === name);
  if (isEvery("boolean")) return "boolean";
  return isEvery("number") ? "number" : "string";
}

function deeper(place: Place): Place {
  return { ...place, levels: place.levels - 1 };
}

function canAfford(schema: Source, budget: Budget): boolean {
  const entries = Object.values(schema).map((value) =>
    typeof value === "object" && value !== null ? 1 + Object.keys(value).length : 1,
  );
  budget.entries -= entries.reduce((sum, count) => sum + count, 1);
  return budget.entries >= 0;
}

function spend(budget: Budget, chars: number): boolean {
  if (budget.chars < chars) return false;
  budget.chars -= chars;
  return true;
}

function isObject(value: unknown): value is Source {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Far more steps than a real reference has. */
const MAX_STEPS = 32;

/**
 * Finds what a reference such as `#/$defs/name` stands for. Undefined if it leads out of the schema, or to
 * nothing.
 */
function resolveReference(root: unknown, reference: string): unknown {
  if (reference === "#") return root;
  if (!reference.startsWith("#/")) return undefined;
  const steps = reference.slice(2).split("/", MAX_STEPS + 1);
  if (steps.length > MAX_STEPS) return undefined;
  return steps.reduce<unknown>((value, step) => member(value, decoded(step)), root);
}

function member(value: unknown, name: string | undefined): unknown {
  if (typeof value !== "object" || value === null || name === undefined) return undefined;
  return Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;
}

function decoded(step: string): string | undefined {
  try {
    return decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~");
  } catch {
    return undefined;
  }
}

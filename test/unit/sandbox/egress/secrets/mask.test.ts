import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { maskIn, maskStream } from "../../../../../src/sandbox/egress/secrets/answer-mask.js";
import { SecretMask } from "../../../../../src/sandbox/egress/secrets/secret-mask.js";
import { SpelledTexts } from "../../../../../src/sandbox/egress/secrets/spelled.js";

const SECRET = `k+y/"with=odd&<signs>'tok`;
const texts = new SpelledTexts([SECRET]);

const escaped = (text: string, which: RegExp) =>
  text.replace(which, (one) => `\\u${one.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}`);
const json = (text: string) => JSON.stringify(text).slice(1, -1);
const percent = (text: string, which: RegExp) =>
  text.replace(which, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`);
const html = (text: string) =>
  text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("'", "&#039;");
const lower = (text: string) => text.replace(/%..|\\u..../g, (one) => one.toLowerCase());
const base64 = (text: string) => Buffer.from(text).toString("base64");

/** As the libraries of these languages write it. */
const WRITTEN: Record<string, (text: string) => string> = {
  itself: (text) => text,
  JSON: json,
  "JSON of PHP": (text) => json(text).replaceAll("/", "\\/"),
  "JSON of .NET": (text) => escaped(text, /["+&'<>\\]/g),
  "JSON of Go": (text) => lower(escaped(json(text), /[&<>]/g)),
  "JSON of Gson": (text) => lower(escaped(json(text), /[&<>=']/g)),
  "JSON in JSON": (text) => json(json(text)),
  "JSON of PHP in JSON of Go": (text) => json(json(text).replaceAll("/", "\\/")).replaceAll("&", "\\u0026"),
  URL: encodeURIComponent,
  "URL in lower case": (text) => lower(encodeURIComponent(text)),
  "URL in a URL": (text) => encodeURIComponent(encodeURIComponent(text)),
  "JSON in a URL": (text) => encodeURIComponent(json(text)),
  form: (text) => new URLSearchParams({ a: text }).toString().slice(2),
  "quote of Python": (text) => percent(text, /[^A-Za-z0-9_.\-~/]/g),
  "RFC 3986": (text) => percent(text, /[^A-Za-z0-9_.\-~]/g),
  "every byte in percent": (text) => percent(text, /./g),
  HTML: html,
  "HTML of Go": (text) => html(text).replaceAll("&quot;", "&#34;").replaceAll("&#039;", "&#39;"),
  "HTML of Python": (text) => html(text).replaceAll("&#039;", "&#x27;"),
  "HTML with names": (text) => html(text).replaceAll("/", "&sol;").replaceAll("+", "&plus;"),
  "JSON in HTML": (text) => html(json(text)),
  "HTML in JSON of .NET": (text) => escaped(html(text), /[&+]/g),
  "quoted-printable": (text) => text.replaceAll("=", "=3D"),
  "bytes of C": (text) => text.replace(/[^\w]/g, (one) => `\\x${one.charCodeAt(0).toString(16)}`),
  shell: (text) => text.replaceAll("'", "'\\''"),
  hexadecimal: (text) => Buffer.from(text).toString("hex"),
  "hexadecimal in capitals": (text) => Buffer.from(text).toString("hex").toUpperCase(),
  "Base64 in JSON of PHP": (text) => base64(`~~~${text}???`).replaceAll("/", "\\/"),
  "Base64 in a URL": (text) => encodeURIComponent(base64(`>>>${text}???`)),
};

const stars = (text: string) => "*".repeat(text.length);
const visible = (text: string) => text.replace(/\*+/g, "");

describe("the mask of a secret", () => {
  it.each(Object.entries(WRITTEN).filter(([name]) => !name.startsWith("Base64")))(
    "hides it as %s",
    (_, write) => {
      const written = write(SECRET);
      expect(maskIn(Buffer.from(`a ${written} b`), texts).toString()).toBe(`a ${stars(written)} b`);
    },
  );

  it.each(["Base64 in JSON of PHP", "Base64 in a URL"])("hides it as %s", (name) => {
    // Of three bytes before and three after it, four characters each are left.
    const secret = "\xfb\xef\xbe>>>???ABC";
    const written = WRITTEN[name]?.(secret) ?? "";
    const masked = maskIn(Buffer.from(written), new SpelledTexts([secret])).toString();
    expect(masked).toMatch(/^.{4,12}\*{20,}.{4,12}$/);
  });

  it("hides it in Base64, whatever is before and after it, with line breaks or without", () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 9 }),
        fc.uint8Array({ maxLength: 9 }),
        fc.integer({ min: 5, max: 80 }),
        (before, after, width) => {
          const text = Buffer.concat([before, Buffer.from(SECRET), after]).toString("base64");
          const wrapped = text.replace(new RegExp(`.{${width}}`, "g"), "$&\n");
          for (const one of [text, wrapped]) {
            const masked = maskIn(Buffer.from(one), texts).toString();
            // Characters at both ends share bits with the neighbours, and are less than a byte of the secret each.
            expect(masked.match(/\*+/)?.[0].length).toBeGreaterThanOrEqual(
              Math.floor((SECRET.length * 8) / 6) - 2,
            );
          }
        },
      ),
    );
  });

  it("hides a random secret whose characters are each written in another way, wherever a stream is cut", async () => {
    const ways = Object.entries(WRITTEN).filter(([name]) => !/Base64|hexadecimal/.test(name));
    const character = fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code));
    const one = fc.record({ character, way: fc.nat(ways.length - 1) });
    const secret = fc.array(one, { minLength: 8, maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(secret, fc.array(fc.integer({ min: 1, max: 9 })), async (letters, sizes) => {
        const plain = letters.map((letter) => letter.character).join("");
        const spelled = letters.map((letter) => ways[letter.way]?.[1](letter.character)).join("");
        const stream = maskStream(new SpelledTexts([plain]));
        // Neither is a part of how a character is written.
        let rest = `\n ${spelled} \n`;
        for (const size of sizes) {
          stream.write(Buffer.from(rest.slice(0, size)));
          rest = rest.slice(size);
        }
        stream.end(Buffer.from(rest));
        const shown = Buffer.concat(await stream.toArray()).toString();
        expect(shown).toBe(`\n ${stars(spelled)} \n`);
      }),
    );
  });

  it("hides half of it where a text was cut, however it is written", () => {
    const mask = new SecretMask([{ value: SECRET }]);
    for (const [name, write] of Object.entries(WRITTEN).filter(([one]) => !one.startsWith("Base64"))) {
      const [start, end] = [write(SECRET.slice(0, 15)), write(SECRET.slice(-15))];
      expect([name, visible(mask.text(`a ${start} … ${end} b`))]).toEqual([name, "a  …  b"]);
    }
  });

  it("hides nothing that only looks like it", () => {
    const others = [SECRET.slice(1), SECRET.slice(0, -1), SECRET.replace("+", "/"), SECRET.toUpperCase()];
    for (const other of others.flatMap((one) => [one, json(one), encodeURIComponent(one)]))
      expect(maskIn(Buffer.from(other), texts).toString()).toBe(other);
  });

  it("finds it wherever a stream is cut, and holds nothing else back", async () => {
    const text = Buffer.from(`${SECRET.slice(0, 5)} ${SECRET}${SECRET} ${SECRET.slice(0, 7)}`);
    const expected = maskIn(Buffer.from(text), texts);
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(fc.integer({ min: 1, max: text.length - 1 }), { maxLength: 10 }),
        async (cuts) => {
          const ends = [...cuts.toSorted((a, b) => a - b), text.length];
          const stream = maskStream(texts);
          for (const [at, end] of ends.entries()) stream.write(text.subarray(ends[at - 1] ?? 0, end));
          stream.end();
          expect(Buffer.concat(await stream.toArray()).toString()).toBe(expected.toString());
        },
      ),
    );
  });

  it("is the same for many secrets at once, in a stream that is longer than what is remembered of it", () => {
    const secrets = Array.from({ length: 30 }, (_, at) => `sk-${"ab".repeat(at + 20)}-${at}-end`);
    const many = new SpelledTexts(secrets);
    for (const secret of [...secrets, ...secrets.toReversed()]) {
      const written = secret.replaceAll("b", "\\u0062");
      expect(maskIn(Buffer.from(`x${written}y`), many).toString()).toBe(`x${stars(written)}y`);
    }
  });

  it("passes the beginning of a stream on before its end", async () => {
    const stream = maskStream(texts);
    stream.write("data: 1\n\n");
    expect(String(stream.read())).toBe("data: 1\n\n");
  });
});

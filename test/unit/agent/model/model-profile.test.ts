import { describe, expect, it } from "vitest";
import { profileOf } from "../../../../src/agent/model/model-profile.js";

describe("whether a model reasons", () => {
  it.each(["gpt-5-codex", "openai/gpt-6.1-sol", "codex-mini-latest", "o4-mini"])("%s does", (model) => {
    expect(profileOf(model)).toMatchObject({ reasons: true });
  });

  it.each(["gpt-4.1", "gpt-5-chat-latest", "qwen3-coder", "my-gpt-6"])(
    "%s does not, for all we know",
    (model) => {
      expect(profileOf(model)).toMatchObject({ reasons: false });
    },
  );
});

describe("how much of an output a model is given, by its family", () => {
  it.each([
    "gpt-5-codex",
    "gpt-5.1-codex-max",
    "gpt-5.2-codex",
    "codex-mini-latest",
    "gpt-5.3-codex",
    "gpt-5.4",
    "gpt-5.4-mini",
    "gpt-5.10",
    "openai/gpt-6.1-sol",
  ])("%s: 10 000 tokens", (model) => {
    expect(profileOf(model).truncation).toEqual({ mode: "tokens", limit: 10_000 });
  });

  it.each([
    "gpt-5",
    "gpt-5-mini",
    "gpt-5-2025-08-07",
    "openai/gpt-5.1",
    "gpt-5.2",
    "gpt-5-chat-latest",
    "o3",
    "o4-mini",
    "gpt-4.1",
    "gpt-oss:20b",
    "qwen3-coder",
    "my-gpt-6",
    "scripted",
  ])("%s: 10 000 bytes", (model) => {
    expect(profileOf(model).truncation).toEqual({ mode: "bytes", limit: 10_000 });
  });
});

describe("what is known of a model's window", () => {
  it.each([
    ["gpt-5", 272_000],
    ["gpt-5.1-codex-max", 272_000],
    ["openai/gpt-5-mini", 272_000],
    ["gpt-5-chat-latest", 128_000],
    ["gpt-4.1-mini", 1_047_576],
    ["gpt-4o-2024-11-20", 128_000],
    ["gpt-4", 8_192],
    ["o4-mini", 200_000],
    ["codex-mini-latest", 200_000],
    ["gpt-oss:20b", 131_072],
  ])("of %s it is %d tokens", (model, tokens) => {
    expect(profileOf(model).contextWindowTokens).toBe(tokens);
  });

  it.each(["qwen3-coder", "scripted", "my-gpt-5", "gpt-4-32k", ""])("of %j nobody knows it", (model) => {
    expect(profileOf(model).contextWindowTokens).toBeNull();
  });
});

describe("whether a model takes pictures in their original size", () => {
  it.each([
    ["gpt-5.4", true],
    ["gpt-5.6-sol", true],
    ["openai/gpt-6-luna", true],
    ["gpt-5.2", false],
    ["gpt-4.1", false],
    ["o3", false],
    ["qwen3-coder", null],
  ])("%s: %s", (model, takes) => {
    expect(profileOf(model).takesOriginalPictures).toBe(takes);
  });
});

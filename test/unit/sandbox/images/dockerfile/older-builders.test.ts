import { describe, expect, it } from "vitest";
import {
  forOlderBuilders,
  withoutSyntax,
} from "../../../../../src/sandbox/images/dockerfile/dockerfile-for-older-builders.js";

const translated = (...lines: string[]) => {
  const { text, files } = forOlderBuilders(lines.join("\n"), []);
  return {
    lines: text.split("\n"),
    files: [...files].map(([path, { mode, content }]) => [path, mode, `${content}`]),
  };
};

describe("for builders before Docker 23", () => {
  it("a script is an argument of the stage's shell, and the lines below keep their numbers", () => {
    const { lines, files } = translated(
      "FROM a as one",
      'SHELL ["/bin/bash", "-ec"]',
      "FROM one AS two",
      "RUN --mount=type=cache,target=/x <<-EOF",
      "\techo 'one' \\",
      '\t  "two"',
      "EOF",
      "FROM b",
      "RUN <<EOF",
      "EOF",
    );
    expect(lines).toEqual([
      "FROM a as one",
      'SHELL ["/bin/bash", "-ec"]',
      "FROM one AS two",
      `RUN --mount=type=cache,target=/x ${JSON.stringify(["/bin/bash", "-ec", "echo 'one' \\\n  \"two\"\n"])}`,
      ...["", "", ""],
      "FROM b",
      'RUN ["/bin/sh","-c",""]',
      "",
    ]);
    expect(files).toEqual([]);
  });

  it("the shell reads the heredocs of its own commands", () => {
    const { lines } = translated(
      "FROM a",
      "RUN cat <<'A' <<-B \\",
      " > /x",
      "$a",
      "A",
      "\tb",
      "\tB",
      "USER x",
    );
    const script = "cat <<'A' <<-B  > /x\n$a\nA\n\tb\nB";
    expect(lines).toEqual([
      "FROM a",
      `RUN ${JSON.stringify(["/bin/sh", "-c", script])}`,
      "",
      "",
      "",
      "",
      "",
      "USER x",
    ]);
  });

  it("a script with an interpreter is a file that is run, and a heredoc of COPY one that is copied", () => {
    const { lines, files } = translated(
      "FROM a",
      "RUN <<EOF",
      "#!/usr/bin/env python3",
      "EOF",
      "COPY --chown=1 --link <<-one.txt b <<'two' /dir/",
      "\t1",
      "one.txt",
      "$2",
      "two",
      "ADD --link=true c d",
    );
    expect(lines).toEqual([
      "FROM a",
      'RUN --mount=type=bind,source=.brig-heredocs/2/EOF,target=/dev/pipes/EOF ["/dev/pipes/EOF"]',
      ...["", ""],
      "COPY --chown=1  .brig-heredocs/5/one.txt b .brig-heredocs/5/two /dir/",
      ...["", "", "", ""],
      "ADD c d",
    ]);
    expect(files).toEqual([
      [".brig-heredocs/2/EOF", 0o755, "#!/usr/bin/env python3\n"],
      [".brig-heredocs/5/one.txt", 0o644, "1\n"],
      [".brig-heredocs/5/two", 0o644, "$2\n"],
    ]);
  });

  it.each([
    ["a file", [".brig-heredocs"], ".brig-heredocs-2"],
    ["what is below a folder", ["a", ".brig-heredocs/2/EOF"], ".brig-heredocs-2"],
    ["several", [".brig-heredocs", ".brig-heredocs-2", ".brig-heredocs-3"], ".brig-heredocs-4"],
    ["only similar names", ["a/.brig-heredocs", ".brig-heredocs.txt", ".brig-heredocs-2"], ".brig-heredocs"],
  ])("the folder of such files is none of the build context, which has %s", (_, context, folder) => {
    const { text, files } = forOlderBuilders("FROM a\nCOPY <<EOF /x\nEOF\n", context);
    expect(text.split("\n")[1]).toBe(`COPY ${folder}/2/EOF /x`);
    expect([...files.keys()]).toEqual([`${folder}/2/EOF`]);
  });

  it("everything else stays as it is", () => {
    const text = "FROM a\n\nRUN echo --link \\\n  && cat <<<EOF\nCOPY --from=b --chmod=1 a b\nENV A=<<EOF\n";
    expect(forOlderBuilders(text, [".brig-heredocs"])).toEqual({ text, files: new Map() });
  });
});

it("the directive of another builder goes, and the others stay directives", () => {
  expect(withoutSyntax("# syntax=docker/dockerfile:1\n# escape=`\n\nFROM a\n")).toBe(
    "# escape=`\n\n\nFROM a\n",
  );
  expect(withoutSyntax("#!/usr/bin/docker\n#Syntax = x\nFROM a")).toBe("#!/usr/bin/docker\n\nFROM a");
  for (const text of ["FROM a\n# syntax=x\n", "# comment\n# syntax=x\nFROM a", "# escape=`\nFROM a"])
    expect(withoutSyntax(text)).toBe(text);
});

import type { Command, Help, Option } from "commander";
import { globalOptions, isGlobalOption } from "./global-options.js";

/** The manual page of the program and all its commands, in the language of man(7). What it says is what `--help` says. It has no date, so that a build can be repeated. */
export function manPage(program: Command, version: string): string {
  const help = program.createHelp();
  const name = program.name();
  const visible = help.visibleCommands(program).filter((one) => one.name() !== "help");
  return [
    `.TH ${name.toUpperCase()} 1 "" ${quoted(`${name} ${version}`)}`,
    section("NAME"),
    `${name} \\- ${escaped(firstSentence(program.description()))}`,
    section("SYNOPSIS"),
    `.B ${name}\n[\\fIoptions\\fR] [\\fIcommand\\fR]`,
    section("DESCRIPTION"),
    paragraphs(program.description()),
    section("OPTIONS OF EVERY COMMAND"),
    ...optionEntries(globalOptions(), help),
    ...[...groupsOf(visible)].flatMap(([group, commands]) => [
      section(group.replace(/:$/, "").toUpperCase()),
      ...commands.flatMap((command) => commandEntries(command, { help, before: name })),
    ]),
    "",
  ].join("\n");
}

function groupsOf(commands: readonly Command[]): Map<string, Command[]> {
  const groups = new Map<string, Command[]>();
  for (const command of commands)
    groups.set(command.helpGroup(), [...(groups.get(command.helpGroup()) ?? []), command]);
  return groups;
}

/** A command, and then the commands below it. */
function commandEntries(command: Command, { help, before }: { help: Help; before: string }): string[] {
  const name = `${before} ${command.name()}`;
  const below = help.visibleCommands(command).filter((one) => one.name() !== "help");
  return [
    `.SS ${quoted(`${name} ${command.usage()}`)}`,
    paragraphs(help.commandDescription(command)),
    ...help.visibleArguments(command).map((one) => entry(one.name(), help.argumentDescription(one))),
    ...optionEntries(
      help.visibleOptions(command).filter((one) => !isGlobalOption(one)),
      help,
    ),
    ...below.flatMap((one) => commandEntries(one, { help, before: name })),
  ];
}

function optionEntries(options: readonly Option[], help: Help): string[] {
  return options.map((one) => entry(help.optionTerm(one), help.optionDescription(one)));
}

function section(title: string): string {
  return `.SH ${quoted(title)}`;
}

function entry(term: string, description: string): string {
  return `.TP\n\\fB${escaped(term)}\\fR\n${escaped(description)}`;
}

function paragraphs(text: string): string {
  return text
    .split(/\n{2,}/)
    .map(escaped)
    .join("\n.PP\n");
}

function firstSentence(text: string): string {
  return text.split(/\.\s/)[0] ?? text;
}

function quoted(text: string): string {
  return `"${escaped(text).replaceAll('"', "\\(dq")}"`;
}

/** A line that begins with a dot or an apostrophe would be a request, and a bare hyphen may be shown as another sign. */
function escaped(text: string): string {
  return text
    .replaceAll("\\", "\\(rs")
    .replaceAll("-", "\\-")
    .replaceAll(/^(?=[.'])/gm, "\\&")
    .replaceAll(/^\s+/gm, "");
}

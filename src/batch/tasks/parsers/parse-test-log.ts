import {
  ant,
  cargo,
  cucumber,
  googletest,
  gotest,
  gradle,
  jq,
  maven,
  micropython,
  minitest,
  phpunit,
  redis,
  rspec,
  rubyUnit,
} from "./compiled.js";
import {
  chartJs,
  grommet,
  jest,
  jestFiles,
  jestJson,
  karma,
  marked,
  mocha,
  tap,
  vitest,
} from "./javascript.js";
import { FoundTests, type LogParser, type TestStatus } from "./log-lines.js";
import {
  django,
  matplotlib,
  pytest,
  pytestOptions,
  pytestV2,
  seaborn,
  sympy,
  terminalBenchPytest,
} from "./python.js";

/** Parsers by the names that tasks use: `parse_log_…` in SWE-bench, others in Terminal-Bench. */
const parsers = {
  pytest: terminalBenchPytest,
  parse_log_pytest: pytest,
  parse_log_astroid: pytest,
  parse_log_flask: pytest,
  parse_log_marshmallow: pytest,
  parse_log_pvlib: pytest,
  parse_log_pyvista: pytest,
  parse_log_sqlfluff: pytest,
  parse_log_xarray: pytest,
  parse_log_pytest_options: pytestOptions,
  parse_log_pydicom: pytestOptions,
  parse_log_requests: pytestOptions,
  parse_log_pylint: pytestOptions,
  parse_log_pytest_v2: pytestV2,
  parse_log_astropy: pytestV2,
  parse_log_scikit: pytestV2,
  parse_log_sphinx: pytestV2,
  parse_log_matplotlib: matplotlib,
  parse_log_seaborn: seaborn,
  parse_log_django: django,
  parse_log_sympy: sympy,
  parse_log_jest: jest,
  parse_log_jest_json: jestJson,
  parse_log_carbon: jestFiles,
  parse_log_react_pdf: jestFiles,
  parse_log_grommet: grommet,
  parse_log_vitest: vitest,
  parse_log_highlightjs: mocha,
  parse_log_karma: karma,
  parse_log_tap: tap,
  parse_log_chart_js: chartJs,
  parse_log_marked: marked,
  parse_log_gotest: gotest,
  parse_log_cargo: cargo,
  parse_log_maven: maven,
  parse_log_ant: ant,
  parse_log_gradle_custom: gradle,
  parse_log_googletest: googletest,
  parse_log_redis: redis,
  parse_log_jq: jq,
  parse_log_micropython_test: micropython,
  parse_log_phpunit: phpunit,
  parse_log_rspec_transformed_json: rspec,
  parse_log_minitest: minitest,
  parse_log_cucumber: cucumber,
  parse_log_ruby_unit: rubyUnit,
} as const satisfies Readonly<Record<string, LogParser>>;

export type TestLogParser = keyof typeof parsers;

export const testLogParsers = Object.keys(parsers) as readonly TestLogParser[];

export type ParsedLog =
  | { kind: "parsed"; statuses: ReadonlyMap<string, TestStatus> }
  /** Hostile: no program has as many tests. */
  | { kind: "too-many-tests" };

export function parseTestLog(parser: TestLogParser, log: string): ParsedLog {
  const found = new FoundTests();
  parsers[parser](log, found);
  return found.hasTooMany ? { kind: "too-many-tests" } : { kind: "parsed", statuses: found.statuses };
}

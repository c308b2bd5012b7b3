// Which test files belong to which project: what a run of `npm test` takes, and what only `npm run test:all` and the check of a change run.

/** Long runs, figures, the runner's own tests and fuzzing, and tests of this suite itself. */
export const deep = [
  "test/docker/figures/*.test.ts",
  "test/docker/runner-native.test.ts",
  "test/docker/sandbox/soak.test.ts",
  "test/docker/test-run.test.ts",
];

/**
 * What takes long, and finds faults that the others do not find, after changes of few files: other people's programs and protocols,
 * sandboxes that are killed or disturbed, random changes, whole batches and conversations, and features with files of their own.
 */
export const slow = [
  "test/e2e/{canaries,doctor,egress-log,egress-questions,egress-settings,image-input,loaded-code,masked-secrets,narrow-terminal}.test.ts",
  "test/e2e/telemetry.test.ts",
  "test/e2e/lasting/*.test.ts",
  "test/e2e/{devcontainer,init,port-control,project-image,run-chat,setup-of-programs}.test.ts",
  "test/e2e/{action,ci-page,claude-code,review,setup-claude}.test.ts",
  "test/e2e/{acp,batch*,bisect,codex-*,conversation-*,exec-server,full-disk,git-*,kept-changes,killed-*,login,mcp-*,nearly-full-disk,package,queue*,release,serve*}.test.ts",
  "test/e2e/{agents,approvals,context,conversation,doctor-attack,lease,overlay,session-steps,sessions,settings,unread-output,view-*,wrap-*}.test.ts",
  "test/docker/{exec-server,mcp,queue,runs,serve}/**/*.test.ts",
  "test/docker/{approvals-table,base-image,engine,image-metadata,image-prune,known-safe-commands,language-images,looking-tools,podman,sweep,toolbox-volume}.test.ts",
  "test/docker/sandbox/egress/{aws-secrets,real-clients,trust-stores}.test.ts",
  "test/docker/sandbox/{branch/branch,config-directories,host-git,pool/pool}.test.ts",
  "test/docker/sandbox/{bridge,kill,killed-session,lease,memory-left,receipt,reconnect,removal,runner-abuse,scheduling,silence,trouble}.test.ts",
  "test/docker/sandbox/overlay/{fork,fork-changes,killed,lifetime,point-trouble,random-*,shared-tree}.test.ts",
  "test/docker/sandbox/tree/{changes,commit,commit-killed,copy}.test.ts",
  "test/isolation/**/*.test.ts",
];

/**
 * Where the runner itself is what is tested: its commands, streams, files and connections. The other tests of sandboxes ask it for nothing else,
 * and the runner's own tests have the sanitizers as well.
 */
export const ofTheRunner = [
  "test/docker/sandbox/{bad-input,bridge,ended,files,first-stream,kill,lease,pipes,pty,receipt,reconnect,results}.test.ts",
  "test/docker/sandbox/{runner-abuse,silence,stdin}.test.ts",
  "test/docker/sandbox/network/*.test.ts",
  "test/docker/sandbox/egress/allow-list.test.ts",
  "test/docker/sandbox/overlay/{diff,random-changes}.test.ts",
  "test/docker/sandbox/tree/{commit,copy}.test.ts",
];

/** Tests of which everyday runs have a short form: random ones, and those that go through all cases. */
export const shortOtherwise = [
  "test/docker/apply-patch-program.test.ts",
  "test/e2e/lasting/kills.test.ts",
  "test/unit/**/random-*.test.ts",
  "test/unit/agent/{broken-streams,conversation-pairing}.test.ts",
  "test/unit/cli/questions/approval-question.test.ts",
  "test/unit/agent/config/settings/tightening.test.ts",
  "test/unit/sandbox/egress/log/egress-log.test.ts",
  "test/unit/services/exec-server/{connection,files/walk}.test.ts",
  "test/unit/lib/terminal/{break-columns,terminal,terminal-guard}.test.ts",
  "test/unit/agent/mcp/client/{stdio-servers,tool-list/tool-schema}.test.ts",
  "test/unit/services/mcp-server/serve-http.test.ts",
  "test/unit/agent/model/{login/chatgpt-credentials,stream-pieces}.test.ts",
  "test/unit/sandbox/policy/session-authority.test.ts",
  "test/unit/batch/runs/seal/seal.test.ts",
  "test/unit/sandbox/{changes/unified-text,snapshots/points}.test.ts",
  "test/unit/agent/session/read/{session-reader,session-steps}.test.ts",
  "test/unit/batch/tasks/{harbor/any-toml,parsers/hostile}.test.ts",
  "test/unit/tools/files/{list-dir/list-dir,read-file/indented-block,read-file/range}.test.ts",
  "test/unit/tools/{command/dangerous-commands,command/real-shell,patch/fuzz,patch/reviewed-patch,picture/image-resizer,picture/view-image}.test.ts",
];

/** Tests of what tests and measures: they run when that changes. */
export const ofTools = ["test/unit/{bench,scripts}/**/*.test.ts"];

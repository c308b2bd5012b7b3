import { useEffect, useMemo, useState } from "preact/hooks";
import { ThemeSwitch } from "../../../lib/page/theme-switch.js";
import { useFocusOnChange } from "../../../lib/page/use-focus-on-change.js";
import { usePageState } from "../../../lib/page/use-page-state.js";
import { fragmentOf, stateOf } from "./page-state.js";
import { SandboxView } from "./sandbox-view.js";
import { SandboxesView } from "./sandboxes-view.js";
import { ServiceCalls, storedToken } from "./service.js";
import { SignIn } from "./sign-in.js";

/** Who looks at the page: nobody yet, or whoever has the token. */
type Viewer = { kind: "nobody"; refusal: string | null } | { kind: "somebody"; service: ServiceCalls };

export function App() {
  const [token, setToken] = useState(storedToken.read);
  const [refusal, setRefusal] = useState<string | null>(null);
  const viewer = useMemo<Viewer>(
    () =>
      token === null ? { kind: "nobody", refusal } : { kind: "somebody", service: new ServiceCalls(token) },
    [token, refusal],
  );
  const leave = (why: string | null) => {
    storedToken.forget();
    setRefusal(why);
    setToken(null);
  };
  return (
    <>
      <button type="button" class="skip" onClick={() => document.getElementById("main")?.focus()}>
        Skip to the content
      </button>
      <header class="top">
        <p class="brand">brig serve</p>
        <ThemeSwitch />
        {viewer.kind === "somebody" && (
          <button type="button" onClick={() => leave(null)}>
            Sign out
          </button>
        )}
      </header>
      <main id="main" tabIndex={-1}>
        {viewer.kind === "nobody" ? (
          <SignIn
            refusal={viewer.refusal}
            onToken={(given) => {
              storedToken.keep(given);
              setRefusal(null);
              setToken(given);
            }}
          />
        ) : (
          <Content
            service={viewer.service}
            onRefused={() => leave("The token is not valid, or not any more.")}
          />
        )}
      </main>
    </>
  );
}

function Content({ service, onRefused }: { service: ServiceCalls; onRefused: () => void }) {
  const navigation = usePageState({ stateOf, fragmentOf });
  const [done, setDone] = useState("");
  const { sandbox } = navigation.state;
  const heading = useFocusOnChange(sandbox);
  useEffect(() => {
    document.title = `${sandbox === "" ? "Sandboxes" : `Sandbox ${sandbox.slice(0, 12)}`} · brig serve`;
  }, [sandbox]);
  const common = { service, navigation, heading, onRefused };
  return (
    <>
      <p role="status" class={done === "" ? "visually-hidden" : "notice"}>
        {done}
      </p>
      {sandbox === "" ? (
        <SandboxesView {...common} />
      ) : (
        <SandboxView key={sandbox} {...common} id={sandbox} onDone={setDone} />
      )}
    </>
  );
}

import { useEffect, useRef } from "preact/hooks";

interface SignInProps {
  /** Why the token before was not enough. */
  refusal: string | null;
  onToken: (token: string) => void;
}

export function SignIn({ refusal, onToken }: SignInProps) {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    document.title = "Sign in · brig serve";
    input.current?.focus();
  }, []);
  return (
    <form
      class="sign-in"
      onSubmit={(event) => {
        event.preventDefault();
        const token = input.current?.value.trim() ?? "";
        if (token !== "") onToken(token);
      }}
    >
      <h1>Sign in</h1>
      {refusal !== null && <p role="alert">{refusal}</p>}
      <label for="token">Token</label>
      <input
        ref={input}
        id="token"
        type="password"
        required
        autocomplete="off"
        autocapitalize="none"
        spellcheck={false}
        aria-describedby="token-hint"
      />
      <p id="token-hint" class="soft">
        The one that brig serve printed, or that is in your token file. It stays in this tab, and is sent to
        this service only.
      </p>
      <button type="submit">Sign in</button>
    </form>
  );
}

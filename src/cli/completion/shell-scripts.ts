/**
 * What each shell is given. The words typed so far are handed to brig as arguments and are never evaluated: they may be an unfinished
 * command line with $(…) in it. brig answers with a line that says whether names of files may follow, then with a word and what it is in
 * each line.
 */
export const shellScripts = {
  bash: `# Completion of brig for bash. In ~/.bashrc: source <(brig completion bash)
_brig() {
  local line kind=
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ -z $kind ]]; then kind=$line; else COMPREPLY+=("\${line%%$'\\t'*}"); fi
  done < <(brig complete bash -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  case $kind in
    none) compopt +o default ;;
    directories) compopt +o default -o dirnames ;;
  esac
  [[ \${#COMPREPLY[@]} -eq 1 && \${COMPREPLY[0]} == *[:=] ]] && compopt -o nospace
}
complete -o default -F _brig brig
`,
  zsh: `#compdef brig
# Completion of brig for zsh. In ~/.zshrc, after compinit: source <(brig completion zsh)
_brig() {
  local -a lines words_of open
  local line value typed=$PREFIX
  [[ $PREFIX == --*=* ]] && compset -P '*='
  lines=("\${(@f)$(brig complete zsh -- "\${(@Q)words[2,CURRENT-1]}" "\${(Q)typed}" 2>/dev/null)}")
  for line in "\${(@)lines[2,-1]}"; do
    value=\${\${line%%$'\\t'*}//:/\\\\:}
    if [[ $line == *[:=]$'\\t'* ]]; then open+=("$value:\${line#*$'\\t'}"); else words_of+=("$value:\${line#*$'\\t'}"); fi
  done
  _describe brig words_of -- open -S ''
  case \${lines[1]} in
    files) _files ;;
    directories) _files -/ ;;
  esac
}
if [[ $funcstack[1] == _brig ]]; then _brig; else compdef _brig brig; fi
`,
  fish: `# Completion of brig for fish. Once: brig completion fish > ~/.config/fish/completions/brig.fish
function __brig_complete
    set -l before (commandline -opc)
    set -e before[1]
    set -l typed (commandline -ct)
    set -l lines (brig complete fish -- $before "$typed" 2>/dev/null)
    set -l start (string match -r -- '^--[^=]*=' "$typed")
    set -l rest (string replace -r -- '^--[^=]*=' '' "$typed")
    for line in $lines[2..]
        printf '%s\\n' "$start$line"
    end
    switch "$lines[1]"
        case files
            for line in (__fish_complete_path "$rest")
                printf '%s\\n' "$start$line"
            end
        case directories
            for line in (__fish_complete_directories "$rest" '')
                printf '%s\\n' "$start$line"
            end
    end
end
complete -c brig -f -a '(__brig_complete)'
`,
} as const;

export type Shell = keyof typeof shellScripts;

export function isShell(text: string): text is Shell {
  return Object.hasOwn(shellScripts, text);
}

#compdef session-magics
# zsh: put  eval "$(session-magics completion zsh)"  into ~/.zshrc, after compinit
_session_magics() {
    local -a lines entries
    local line word
    lines=("${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    for line in "${lines[@]}"; do
        word=${line%%$'\t'*}
        case $word in
            '') ;;
            :files) _files ;;
            :commands) _command_names ;;
            :directories) _files -/ ;;
            *) if [[ $line == *$'\t'* ]]; then
                   entries+=("${word//:/\\:}:${line#*$'\t'}")
               else
                   entries+=("${word//:/\\:}")
               fi ;;
        esac
    done
    (( ${#entries} )) && _describe -V 'session-magics' entries
}
if [[ $funcstack[1] == _session_magics ]]; then
    _session_magics "$@"
elif (( $+functions[compdef] )); then
    compdef _session_magics session-magics
fi

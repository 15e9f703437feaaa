# bash: put  eval "$(session-magics completion bash)"  into ~/.bashrc
_session_magics() {
    local line word last head reply=() found
    # Bash cuts words at = and :, and before @, which are parts of ours; so they are taken from the line.
    line=${COMP_LINE:0:COMP_POINT}
    local words=()
    read -r -a words <<<"$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    word=${words[-1]}
    last=$word
    [[ $COMP_WORDBREAKS == *=* ]] && last=${last##*=}
    [[ $COMP_WORDBREAKS == *:* ]] && last=${last##*:}
    [[ $COMP_WORDBREAKS == *@* && $last == *@* ]] && last=@${last##*@}
    head=${word%"$last"}
    COMPREPLY=()
    while IFS=$'\t' read -r found _; do
        case $found in
            :files) compopt -o default; mapfile -t reply < <(compgen -f -- "$word"); COMPREPLY+=("${reply[@]}") ;;
            :commands) mapfile -t reply < <(compgen -c -- "$word"); COMPREPLY+=("${reply[@]}") ;;
            :directories) compopt -o filenames; mapfile -t reply < <(compgen -d -- "$word"); COMPREPLY+=("${reply[@]}") ;;
            *) COMPREPLY+=("${found#"$head"}"); [[ $found == *= ]] && compopt -o nospace ;;
        esac
    done < <("${words[0]}" __complete "${words[@]:1}" 2>/dev/null)
}
complete -F _session_magics session-magics

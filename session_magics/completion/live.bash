# Completion in the live bash: run in a subshell, told what to do by the last lines of the text that this is part of.
# Everything is told through the holder's FIFO: a record is a kind, a tab, and names (one, or one a line).
IFS=$' \t\n'
builtin shopt -u failglob nocaseglob dotglob globstar
builtin shopt -s nullglob extglob
builtin set +fnv
__sm_most=1000
COMP_WORDBREAKS=$' \t\n"\'><=;|&(:'

__sm_tell() {
  local kind=$1
  shift
  [ $# -eq 0 ] || __sm_w '\001G\t0\t'"$kind"'\t%s\0' "${@:1:__sm_most}" >"$__sm_fifo"
}

__sm_list() { # KIND COMPGEN-OPTIONS…
  local kind=$1
  shift
  { __sm_w '\001G\t0\t%s\t' "$kind"; builtin compgen "$@"; __sm_w '\0'; } >"$__sm_fifo"
}

__sm_files() { # DIRECTORY NAME WHICH [EXTENSIONS]: names in the directory that begin so
  local one files=() directories=() every LC_COLLATE=C # sorting by it is fast
  case $3 in
    none) return ;;
    all) if [ "${4-}" ]; then every=("$1$2"*.@($4) "$1$2"*/); else every=("$1$2"*); fi ;;
    directories) every=("$1$2"*/) ;;
    programs) every=("$1$2"*) ;;
  esac
  [ "$3" = programs ] || every=("${every[@]:0:__sm_most}")
  every=("${every[@]%/}")
  for one in "${every[@]}"; do
    case ${one##*/} in . | ..) continue ;; esac
    if [ -d "$one" ]; then
      directories+=("${one##*/}")
    elif [ "$3" = all ] || { [ "$3" = programs ] && [ -x "$one" ]; }; then
      files+=("${one##*/}")
    fi
  done
  __sm_tell file "${files[@]}"
  __sm_tell directory "${directories[@]}"
}

__sm_names() { # what a completion function gave as names of files
  local one files=() directories=()
  for one in "${@:1:__sm_most}"; do
    if [ -d "${one/#\~/~}" ]; then directories+=("$one"); else files+=("$one"); fi
  done
  __sm_tell name "${files[@]}"
  __sm_tell named-directory "${directories[@]}"
}

__sm_commands() { # BEGINNING
  __sm_list alias -A alias -- "$1"
  __sm_list keyword -A keyword -- "$1"
  __sm_list function -A function -- "$1"
  __sm_list builtin -A builtin -- "$1"
  __sm_list command -A command -- "$1"
}

__sm_variables() { __sm_list variable -A variable -- "$1"; }
__sm_users() { __sm_list user -A user -- "$1"; }
__sm_jobs() { __sm_list job -A job -- "$1"; }

__sm_snapshot() { # what is known of this shell while it is busy
  __sm_list known-alias -A alias
  __sm_list known-function -A function
  __sm_list known-variable -A variable
  __sm_tell path "$PATH"
}

# ---- programmable completion

compopt() { # the real one works inside readline alone
  local add
  while [ $# -gt 0 ]; do
    case $1 in
      [-+]o) add=$1 __sm_options=${__sm_options//" $2 "/ }
        [ "$add" = +o ] || __sm_options="$__sm_options$2 "
        shift ;;
    esac
    shift
  done
}

__sm_understand() { # the words of what complete -p printed
  __sm_options=' ' __sm_function= __sm_program= __sm_actions=()
  shift
  while [ $# -gt 0 ]; do
    case $1 in
      -o) __sm_options="$__sm_options$2 "; shift ;;
      -F) __sm_function=$2; shift ;;
      -C) __sm_program=$2; shift ;;
      -[AGWPSX]) __sm_actions+=("$1" "$2"); shift ;;
      -[DEI]) ;;
      -?) __sm_actions+=("$1") ;;
    esac
    shift
  done
}

__sm_specified() { # NAME: whether there is a specification for it, which is understood then
  local found
  found=$(builtin complete -p -- "$1") || found=$(builtin complete -p -- "${1##*/}") || return
  builtin eval "__sm_understand $found"
}

__sm_git() { # git's own completion, which needs nothing else
  local place
  for place in /usr/share/bash-completion/completions/git /usr/share/git-core/contrib/completion \
    /usr/share/git/completion /usr/share/doc/git/contrib/completion /usr/local/etc/bash_completion.d \
    /opt/homebrew/etc/bash_completion.d /Library/Developer/CommandLineTools/usr/share/git-core; do
    [ -d "$place" ] && place=$place/git-completion.bash
    [ -r "$place" ] && builtin . "$place" && __sm_specified git && return
  done
}

__sm_load() { # NAME: have its completion loaded, by what the shell has for that or by bash-completion
  local found place
  if ! builtin complete -p -D; then
    [ "$1" = git ] && __sm_git && return
    for place in /usr/share /usr/local/share /opt/homebrew/share /opt/local/share; do
      [ -r "$place/bash-completion/bash_completion" ] || continue
      builtin . "$place/bash-completion/bash_completion"
      __sm_specified "$1" && return
      break
    done
  fi
  found=$(builtin complete -p -D) || return
  builtin eval "__sm_understand $found"
  [ "$__sm_function" ] || return
  "$__sm_function" "$@"
  [ $? -eq 124 ] && __sm_specified "$1"
}

__sm_unalias() { # if the command is an alias, put what it stands for into its place
  local line=${BASH_ALIASES[$__sm_name]-} words
  builtin read -r -a words <<<"$line"
  [ "${#words[@]}" -gt 0 ] || return
  COMP_LINE=$line${COMP_LINE#"${COMP_WORDS[0]}"}
  COMP_POINT=${#COMP_LINE} COMP_CWORD=$((COMP_CWORD + ${#words[@]} - 1))
  COMP_WORDS=("${words[@]}" "${COMP_WORDS[@]:1}") __sm_name=${words[0]}
}

__sm_own_files() { # bash-completion's way to complete files, which is slow and knows no quotes, is replaced by ours
  _filedir() {
    __sm_wanted=all __sm_extensions=
    case ${1-} in
      -d) __sm_wanted=directories ;;
      ?*) __sm_extensions="$1|${1^^}" ;;
    esac
  }
  _comp_compgen_filedir() { _filedir "$@"; }
}

__sm_programmable() { # CURRENT: whether the command has a completion of its own; what that gives is told
  local previous found
  __sm_specified "$__sm_name" || {
    [ "${BASH_VERSINFO[0]}" -lt 4 ] || __sm_unalias
    __sm_specified "$__sm_name" || __sm_load "$__sm_name" "$1" "${COMP_WORDS[COMP_CWORD - 1]}"
  } || return
  previous=${COMP_WORDS[COMP_CWORD - 1]} COMPREPLY=()
  [ "${#__sm_actions[@]}" -eq 0 ] || __sm_list word "${__sm_actions[@]}" -- "$1"
  if [ "$__sm_function" ]; then
    { builtin declare -F _filedir || builtin declare -F _comp_compgen_filedir; } && __sm_own_files
    "$__sm_function" "$__sm_name" "$1" "$previous"
  elif [ "$__sm_program" ]; then
    export COMP_LINE COMP_POINT COMP_TYPE COMP_KEY
    { __sm_w '\001G\t0\tword\t'
      builtin eval "$__sm_program"' "$__sm_name" "$1" "$previous"'
      __sm_w '\0'; } >"$__sm_fifo"
  fi
  IFS=$' \t\n'
  case $__sm_options in
    *' filenames '*) __sm_names "${COMPREPLY[@]}" ;;
    *) __sm_tell reply "${COMPREPLY[@]}" ;;
  esac
}

__sm_arguments() { # DIRECTORY NAME WHICH CURRENT COMMAND; COMP_WORDS and the others are set
  local which=$3
  __sm_name=$5 COMPREPLY=() __sm_options=' default ' __sm_wanted= __sm_extensions=
  if builtin shopt -q progcomp && [ "$__sm_name" ] && __sm_programmable "$4"; then
    [ "$which" = none ] || case $__sm_wanted in
      directories) which=directories ;;
      all) ;;
      *) false ;;
    esac || case ${#COMPREPLY[@]}$__sm_options in
      *' plusdirs '* | '0 '*' dirnames '*) which=directories ;;
      '0 '*' default '* | '0 '*' bashdefault '* | '0 '*' filenames '*) ;;
      *) return ;;
    esac
  fi
  __sm_files "$1" "$2" "$which" "$__sm_extensions"
  return 0
}

# ---- no longer than that

__sm_limited() { # SECONDS COMMAND…
  local limit=$1
  shift
  if [ "${BASH_VERSINFO[0]}" -lt 4 ]; then
    "$@" </dev/null
    return 0
  fi
  coproc __SM { "$@" </dev/null >/dev/null 2>&1; builtin echo; }
  builtin read -r -t "$limit" -u "${__SM[0]}" _ && return
  builtin kill -KILL "$__SM_PID"
  return 1
}

__sm_sweep() { # end what the command has started, unless it cannot be told from the shell's own group
  [ "$(ps -o pgid= -p "$BASHPID")" -eq "$BASHPID" ] && builtin trap '' TERM && builtin kill -TERM 0
}

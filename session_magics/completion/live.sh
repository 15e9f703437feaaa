# Completion in a live POSIX shell: run in a subshell, told what to do by the last lines of the text that this is part
# of. Everything is told through the holder's FIFO: a record is a kind, a tab, and names (one, or one a line).
set +fnvx
IFS='
'
__sm_most=1000

__sm_tell() { printf '\001G\t0\t%s\t%s\0' "$1" "$2"; }

__sm_some() { # KIND BEGINNING NAME…: those that begin so
  __sm_kind=$1 __sm_begin=$2 __sm_found=
  shift 2
  for __sm_one; do
    case $__sm_one in "$__sm_begin"*) __sm_found="$__sm_found$__sm_one
" ;; esac
  done
  [ -z "$__sm_found" ] || __sm_tell "$__sm_kind" "$__sm_found"
}

__sm_files() { # DIRECTORY NAME WHICH
  [ "$3" != none ] || return 0
  __sm_count=0
  for __sm_one in "$1$2"*; do
    case ${__sm_one##*/} in . | ..) continue ;; esac
    if [ -d "$__sm_one" ]; then
      __sm_tell directory "${__sm_one##*/}"
    elif [ "$3" = all ] && { [ -e "$__sm_one" ] || [ -h "$__sm_one" ]; }; then
      __sm_tell file "${__sm_one##*/}"
    elif [ "$3" = programs ] && [ -x "$__sm_one" ]; then
      __sm_tell file "${__sm_one##*/}"
    else
      continue
    fi
    __sm_count=$((__sm_count + 1))
    [ "$__sm_count" -lt "$__sm_most" ] || break
  done
}

__sm_aliases() { alias | sed -n 's/^alias //; s/^\([^=]*\)=.*/\1/p'; }
__sm_names() { set | sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\)=.*/\1/p'; }

__sm_commands() { # BEGINNING
  __sm_some alias "$1" $(__sm_aliases)
  __sm_some keyword "$1" case do done elif else esac fi for if in then until while
  __sm_some builtin "$1" alias bg break cd command continue echo eval exec exit export false fg getopts hash jobs \
    kill printf pwd read readonly return set shift test times trap true type ulimit umask unalias unset wait
  IFS=:
  set -- "$1" $PATH
  IFS='
'
  __sm_begin=$1 __sm_found=
  shift
  for __sm_place; do
    for __sm_one in "$__sm_place/$__sm_begin"*; do
      [ ! -x "$__sm_one" ] || [ -d "$__sm_one" ] || __sm_found="$__sm_found${__sm_one##*/}
"
    done
  done
  [ -z "$__sm_found" ] || __sm_tell command "$__sm_found"
}

__sm_variables() { __sm_some variable "$1" $(__sm_names); }
__sm_users() { __sm_some user "$1" $(cut -d: -f1 /etc/passwd); }
__sm_jobs() { :; }
__sm_arguments() {
  __sm_files "$1" "$2" "$3"
  return 0
}
__sm_limited() {
  shift
  "$@"
}

__sm_snapshot() { # what is known of this shell while it is busy
  __sm_some known-alias '' $(__sm_aliases)
  __sm_some known-variable '' $(__sm_names)
  __sm_tell path "$PATH"
}

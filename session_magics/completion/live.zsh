# Completion in the live zsh: run in a subshell, told what to do by the last lines of the text that this is part of.
# Everything is told through the holder's FIFO: a record is a kind, a tab, and names (one, or one a line).
builtin setopt null_glob
__sm_most=1000
zmodload zsh/parameter

__sm_some() { # KIND BEGINNING NAME…: those that begin so
  local kind=$1 begin=$2
  shift 2
  local found=("${(@M)@:#${begin}*}")
  (( $#found )) && builtin printf '\001G\t0\t%s\t%s\0' $kind "${(F)found}" >"$__sm_fifo"
}

__sm_tell() { # KIND NAME…: as many records
  local kind=$1
  shift
  (( $# == 0 )) || builtin printf '\001G\t0\t'$kind'\t%s\0' "${@[1,__sm_most]}" >"$__sm_fifo"
}

__sm_files() { # DIRECTORY NAME WHICH
  [[ $3 != none ]] || return
  local begin=${(b)1}${(b)2}
  local -a directories=(${~begin}*(N-/)) files=()
  [[ $3 = all ]] && files=(${~begin}*(N-^/))
  [[ $3 = programs ]] && files=(${~begin}*(N-*))
  [[ $2 = .* ]] && directories=(${directories:#*/(.|..)})
  __sm_tell directory "${(@)directories##*/}"
  __sm_tell file "${(@)files##*/}"
}

__sm_commands() { # BEGINNING
  __sm_some alias "$1" ${(k)aliases} ${(k)galiases}
  __sm_some keyword "$1" $reswords
  __sm_some function "$1" ${(k)functions}
  __sm_some builtin "$1" ${(k)builtins}
  __sm_some command "$1" ${(k)commands}
}

__sm_variables() { __sm_some variable "$1" ${(k)parameters}; }
__sm_users() { __sm_some user "$1" ${(k)userdirs}; }
__sm_jobs() { :; }
__sm_arguments() {
  __sm_files "$1" "$2" "$3"
  return 0
}
__sm_limited() {
  shift
  "$@" </dev/null
}

__sm_snapshot() { # what is known of this shell while it is busy
  __sm_some known-alias '' ${(k)aliases}
  __sm_some known-function '' ${(k)functions}
  __sm_some known-variable '' ${(k)parameters}
  __sm_tell path "$PATH"
}

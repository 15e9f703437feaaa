builtin printf '\001G\t0\tpath\t%s\0' (builtin string join : $PATH)
builtin printf '\001G\t0\tknown-function\t%s\0' (builtin functions -n | builtin string split ', ' | builtin string join \n | builtin string collect)
builtin printf '\001G\t0\tknown-variable\t%s\0' (builtin set -n | builtin string collect)

#!/bin/sh
# `docker run fcer distill` and `docker run fcer fcer distill` are the same: MLflow hands a container whole commands.
set -eu
case "${1-}" in
fcer | mlflow | dask | python) ;;
*) set -- fcer "$@" ;;
esac
exec "$@"

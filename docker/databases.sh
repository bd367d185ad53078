#!/bin/sh
# PostgreSQL's image runs this once, on an empty volume: Optuna's studies get a database and a role of their own.
# MLflow's is there already, and a worker that searches has no business in it.
set -eu
psql --set=ON_ERROR_STOP=1 --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" <<'SQL'
\getenv password STUDIES_PASSWORD
CREATE ROLE studies LOGIN PASSWORD :'password';
CREATE DATABASE studies OWNER studies;
REVOKE CONNECT ON DATABASE mlflow FROM PUBLIC;
SQL

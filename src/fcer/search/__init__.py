"""Studies over the head. Only this package imports optuna; it knows nothing of MLflow."""

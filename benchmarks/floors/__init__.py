"""The least that could do the job: bare programs without policy, record or isolation, to compare with."""

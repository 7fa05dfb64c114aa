"""The series that makes upstream Kalibr ours: where its lines go, and what its modules do."""

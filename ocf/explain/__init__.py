"""What a person asks and gets: explainers, questions, explanations, batches, regions, pages and plots."""

"""The capsule network of (Sabour et al., 2017): the classifier that every capsule paper is measured against."""
